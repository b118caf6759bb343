package restore

import (
	"context"
	"maps"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editIdentity sets the datapath id and the MAC address of each bridge, which
// ovs-vswitchd would otherwise derive from its devices.
func editIdentity(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		show, ok, err := rec.show(b)
		if err != nil {
			return err
		}
		if !ok || show.DatapathID == "" {
			o.Note(report.Unknown, "%s: no ovs-ofctl show was collected: its datapath id and MAC address are chosen by ovs-vswitchd", b.Name)
			continue
		}
		config := maps.Clone(b.OtherConfig)
		config["datapath-id"] = show.DatapathID
		for _, p := range show.Ports {
			if p.Name == b.Name || p.Number == openflow.PortLocal {
				config["hwaddr"] = p.MAC
			}
		}
		o.Note(report.Restored, "")
		b.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"other_config": config}))
	}
	return s.db.Transact(ctx, changes...)
}
