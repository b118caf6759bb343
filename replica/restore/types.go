package restore

import (
	"context"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editPortTypes changes each port to one that opens without a device, and
// removes options that would open files or sockets of this host.
func editPortTypes(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for bridge, iface := range sw.interfaces() {
		if !iface.isDevice() {
			continue
		}
		columns := ovsdb.Columns{}
		if !slices.Contains([]string{"", "system", "internal", "dummy"}, iface.Type) {
			outcome.Note(report.Restored, "%s: port %q of type %q is opened as a dummy", bridge.Name, iface.Name, iface.Type)
			iface.Type = "dummy"
			columns["type"] = iface.Type
		}
		if len(iface.Options) > 0 { // a dummy device would use options such as stream and pcap; a trace shows no option of a device
			iface.Options = map[string]string{}
			columns["options"] = iface.Options
		}
		if len(columns) > 0 {
			outcome.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update("Interface", iface.UUID, columns))
		}
	}
	return sw.db.Transact(ctx, changes...)
}

// editDatapathTypes changes netdev, which would create TAP devices, to dummy.
// The type system is a dummy already (--enable-dummy=system).
func editDatapathTypes(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		if bridge.hasKernelDatapath() {
			continue
		}
		outcome.Note(report.Restored, "%s: datapath type %q runs as a dummy", bridge.Name, bridge.DatapathType)
		changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"datapath_type": "dummy"}))
	}
	return sw.db.Transact(ctx, changes...)
}
