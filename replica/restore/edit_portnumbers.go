package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editPortNumbers asks for the live node's OpenFlow port numbers.
func editPortNumbers(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			switch {
			case i.OfPort > 0 && i.OfPort < 65280: // OFPP_MAX; beyond are LOCAL and the like
				o.Note(report.Restored, "")
				if i.Requested != i.OfPort {
					changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"ofport_request": i.OfPort}))
				}
			case i.OfPort == 0 && i.Name != b.Name:
				o.Note(report.Unknown, "%s: the OpenFlow port number of %q is not in the database", b.Name, i.Name)
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}
