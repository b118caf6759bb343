package restore

import (
	"context"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editPortNumbers requests the live node's OpenFlow port numbers.
func editPortNumbers(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	const maxPorts = 0xff00 // OFPP_MAX of OpenFlow 1.0; LOCAL and other reserved ports are above
	var changes []ovsdb.Change
	for bridge, iface := range sw.interfaces() {
		switch {
		case iface.OfPort > 0 && iface.OfPort < maxPorts:
			outcome.Note(report.Restored, "")
			if iface.Requested != iface.OfPort {
				changes = append(changes, ovsdb.Update("Interface", iface.UUID, ovsdb.Columns{"ofport_request": iface.OfPort}))
			}
		case iface.OfPort == 0 && iface.Name != bridge.Name:
			outcome.Note(report.Unknown, "%s: the OpenFlow port number of %q is not in the database", bridge.Name, iface.Name)
		}
	}
	return sw.db.Transact(ctx, changes...)
}
