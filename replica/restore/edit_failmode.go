package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
)

// editFailMode keeps a bridge whose controller can't be reached from emptying
// its flow table after 15 seconds, and a fresh one from adding a NORMAL flow.
func editFailMode(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if b.FailMode != "secure" {
			o.note(Restored, "")
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"fail_mode": "secure"}))
		}
	}
	return n.DB.Transact(ctx, changes...)
}
