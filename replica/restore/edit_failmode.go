package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// editFailMode keeps a bridge whose controller can't be reached from emptying
// its flow table after 15 seconds, and a fresh one from adding a NORMAL flow;
// but for those that had failed open on the live node (failopen.go).
func editFailMode(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		failedOpen, known, err := n.facts(ctx).FailedOpen(ctx, b.Name)
		if err != nil {
			return err
		}
		b.failsOpen = failedOpen
		mode := "secure"
		switch {
		case b.failsOpen:
			mode = "standalone"
		case !known && b.HasControl && b.FailMode != "secure":
			o.Note(report.Unknown, "%s: no %s was collected: it is taken not to have failed open", b.Name, workdir.RecordedBridgeFlows)
		}
		if b.FailMode != mode {
			o.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"fail_mode": mode}))
		}
	}
	return n.DB.Transact(ctx, changes...)
}
