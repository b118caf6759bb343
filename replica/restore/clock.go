package restore

import (
	"context"
	"time"

	"ovs-offline/replica/report"
)

// Clock
//
// Cause: what is restored ages: LACP and spanning tree partners within seconds,
// learned groups and MACs within minutes.
//
// Remedy: time/stop. Everything that a trace needs works with the clock
// standing still, and uses no processor time (measured, OVS 3.1). A second
// time/stop would let the clock jump to the present first, so there is none.

// stopClock stops it if no step has done so before.
func stopClock(ctx context.Context, n *Node, o *report.Outcome) error {
	if err := n.holdClock(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Note(report.Failed, "the replica's state ages: %v", err)
		return nil
	}
	o.Note(report.Restored, "")
	return nil
}

// holdClock stops the replica's clock, once.
func (n *Node) holdClock(ctx context.Context) error {
	if n.clockHeld {
		return nil
	}
	if _, err := n.appctl(ctx, "time/stop"); err != nil {
		return err
	}
	n.clockHeld = true
	return nil
}

// until asks again and again, for a second at most, since ovs-vswitchd takes
// up what it was told on its own thread, and tells nobody when. Running out of
// that time is no error: what was asked for then is as it was last.
func (n *Node) until(ctx context.Context, done func() (bool, error)) error {
	const bound, pause = time.Second, 2 * time.Millisecond
	for deadline := time.Now().Add(bound); ; {
		ok, err := done()
		if ok || err != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
