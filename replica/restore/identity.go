package restore

import (
	"context"
	"maps"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editIdentity sets the datapath id and the MAC address of each bridge, which
// ovs-vswitchd would otherwise derive from its devices.
func editIdentity(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		show, ok, err := rec.show(bridge)
		if err != nil {
			return err
		}
		if !ok || show.DatapathID == "" {
			outcome.Note(report.Unknown, "%s: no ovs-ofctl show was collected: its datapath id and MAC address are chosen by ovs-vswitchd", bridge.Name)
			continue
		}
		config := maps.Clone(bridge.OtherConfig)
		config["datapath-id"] = show.DatapathID
		for _, port := range show.Ports {
			if port.Name == bridge.Name || port.Number == openflow.PortLocal {
				config["hwaddr"] = port.MAC
			}
		}
		outcome.Note(report.Restored, "")
		bridge.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"other_config": config}))
	}
	return sw.db.Transact(ctx, changes...)
}
