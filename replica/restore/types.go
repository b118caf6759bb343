package restore

import (
	"context"
	"slices"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editPortTypes changes each port to one that opens without a device, and
// removes options that would open files or sockets of this host.
func editPortTypes(ctx context.Context, s *Switch, _ *Recorded, o *report.Outcome) error {
	var changes []ovsdb.Change
	for b, i := range s.interfaces() {
		if !i.isDevice() {
			continue
		}
		columns := ovsdb.Columns{}
		if !slices.Contains([]string{"", "system", "internal", "dummy"}, i.Type) {
			o.Note(report.Restored, "%s: port %q of type %q is opened as a dummy", b.Name, i.Name, i.Type)
			i.Type = "dummy"
			columns["type"] = i.Type
		}
		if len(i.Options) > 0 { // a dummy device would use options such as stream and pcap; a trace shows no option of a device
			i.Options = map[string]string{}
			columns["options"] = i.Options
		}
		if len(columns) > 0 {
			o.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update("Interface", i.UUID, columns))
		}
	}
	return s.db.Transact(ctx, changes...)
}

// editDatapathTypes changes netdev, which would create TAP devices, to dummy.
// The type system is a dummy already (--enable-dummy=system).
func editDatapathTypes(ctx context.Context, s *Switch, _ *Recorded, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		if b.hasKernelDatapath() {
			continue
		}
		o.Note(report.Restored, "%s: datapath type %q runs as a dummy", b.Name, b.DatapathType)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"datapath_type": "dummy"}))
	}
	return s.db.Transact(ctx, changes...)
}
