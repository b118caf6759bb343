package restore

import (
	"context"
)

// stopClock keeps what was restored from ageing: learned flows, BFD, LACP.
func stopClock(ctx context.Context, n *Node, o *outcome) error {
	if _, err := n.appctl(ctx, "time/stop"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.note(Failed, "the replica's state ages: %v", err)
		return nil
	}
	o.note(Restored, "")
	return nil
}
