package restore

import (
	"context"

	"ovs-offline/replica/report"
)

// stopClock stops the clock of ovs-vswitchd unless another step has already stopped it.
//
// Cause: restored state ages: LACP and spanning tree partners within seconds,
// learned groups and MAC addresses within minutes.
//
// Remedy: time/stop. Everything that a trace needs works while the clock is
// stopped, without using processor time (measured with OVS 3.1).
func stopClock(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	if err := sw.stopClock(ctx); err != nil {
		outcome.Note(report.Failed, "the clock can't be stopped, so the replica's state ages: %v", err)
		return ctx.Err()
	}
	outcome.Note(report.Restored, "")
	return nil
}
