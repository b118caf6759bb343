package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
)

// editPortNumbers asks for the live node's OpenFlow port numbers.
func editPortNumbers(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			switch {
			case i.OfPort > 0 && i.OfPort < 65280: // OFPP_MAX; beyond are LOCAL and the like
				o.note(Restored, "")
				if i.Requested != i.OfPort {
					changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"ofport_request": i.OfPort}))
				}
			case i.OfPort == 0 && i.Name != b.Name:
				o.note(Unknown, "%s: the OpenFlow port number of %q is not in the database", b.Name, i.Name)
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}
