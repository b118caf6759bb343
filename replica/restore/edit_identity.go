package restore

import (
	"context"
	"maps"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editIdentity sets the datapath id and the MAC address of each bridge, which
// ovs-vswitchd would otherwise make up from its devices.
func editIdentity(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		show, ok, err := n.show(b)
		if err != nil {
			return err
		}
		if !ok || show.DatapathID == "" {
			o.Note(report.Unknown, "%s: no ovs-ofctl show was collected: its datapath id and MAC are made up", b.Name)
			continue
		}
		config := maps.Clone(b.OtherConfig)
		config["datapath-id"] = show.DatapathID
		for _, p := range show.Ports {
			if p.Name == b.Name || p.Number == 65534 {
				config["hwaddr"] = p.MAC
			}
		}
		o.Note(report.Restored, "")
		b.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"other_config": config}))
	}
	return n.DB.Transact(ctx, changes...)
}
