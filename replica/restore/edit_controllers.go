package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
)

// editControllers leaves controllers where nothing can be dialled, since they
// steer hidden flows; where the daemons share the host's network, they go.
func editControllers(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if !b.HasControl {
			continue
		}
		if n.Isolated {
			o.note(Restored, "")
			continue
		}
		o.note(Approximated, "%s: its controllers are taken out, since the daemons are not isolated here: in-band rules are missing", b.Name)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"controller": nil}))
	}
	return n.DB.Transact(ctx, changes...)
}
