package restore

import (
	"context"
	"slices"
	"strconv"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// failMode keeps each bridge in the fail mode that the live one was in.
//
// Cause: a standalone bridge without its controllers for three times their
// inactivity probe fails open: it empties its flow table and gets a hidden flow,
// NORMAL for all packets, above all others. Flows that are added later stay. A
// bridge without controllers starts with a NORMAL flow, and one whose
// controllers can't be reached fails open after 15 seconds.
//
// Remedy: a bridge that had failed open on the live node is standalone; its
// controllers can't be reached, and a time warp lets it fail open before flows
// are added. All other bridges are secure, and never do.
//
// Source: measured with OVS 3.1.
type failMode struct {
	failed map[*Bridge]bool // the bridges that had failed open
}

// failedOpen reports whether the bridge had failed open on the live node.
func (f *failMode) failedOpen(b *Bridge) bool { return f.failed[b] }

func (f *failMode) edit(ctx context.Context, s *Switch, failedOpen recordedFact, o *report.Outcome) error {
	var changes []ovsdb.Change
	f.failed = map[*Bridge]bool{}
	for _, b := range s.Bridges {
		failed, known, err := failedOpen(ctx, b)
		if err != nil {
			return err
		}
		f.failed[b] = failed
		mode := "secure"
		switch {
		case failed:
			mode = "standalone"
		case !known && b.HasControllers && b.FailMode != "secure":
			o.Note(report.Unknown, "%s: no %s was collected: the bridge is assumed not to have failed open", b.Name, workdir.RecordedBridgeFlows)
		}
		if b.FailMode != mode {
			o.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"fail_mode": mode}))
		}
	}
	return s.db.Transact(ctx, changes...)
}

// recordedFact reports what the recorded hidden flows of a bridge say; known is
// false where they were not collected.
type recordedFact func(context.Context, *Bridge) (holds, known bool, err error)

// restore lets the bridges fail open that had done so; failsOpen reports whether
// a bridge of the replica has.
func (f *failMode) restore(ctx context.Context, s *Switch, failsOpen func(context.Context, *Bridge) (bool, error), o *report.Outcome) error {
	probe, err := f.longestProbe(ctx, s)
	if probe == 0 || err != nil {
		return err
	}
	// More than three probes, in small steps: ovs-vswitchd also needs turns to try to connect.
	if _, err := s.appctl(ctx, "time/warp", strconv.Itoa(4*probe), strconv.Itoa(probe/5)); err != nil {
		o.Note(report.Failed, "the clock can't be moved to the time when bridges fail open: %v", err)
		return ctx.Err()
	}
	for _, b := range s.Bridges {
		if !f.failed[b] {
			continue
		}
		found := false
		err := until(ctx, func() (_ bool, err error) {
			found, err = failsOpen(ctx, b)
			return found, err
		})
		if err != nil {
			return err
		}
		if !found {
			o.Note(report.Failed, "%s: the live bridge had failed open, the replica's does not: it lacks the hidden flow with NORMAL for all packets", b.Name)
			continue
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// longestProbe returns the longest inactivity probe of the bridges that fail
// open, in ms; 0 where there are none.
func (f *failMode) longestProbe(ctx context.Context, s *Switch) (int, error) {
	const least = 5000 // ms; the default, and the shortest that ovs-vswitchd uses
	controllers, err := s.db.Select(ctx, "Controller", "inactivity_probe")
	if err != nil {
		return 0, err
	}
	probes := map[string]int{}
	for _, r := range controllers {
		probes[r.UUID], _ = r.Int("inactivity_probe")
	}
	bridges, err := s.db.Select(ctx, "Bridge", "controller")
	if err != nil {
		return 0, err
	}
	longest := 0
	for _, r := range bridges {
		if !slices.ContainsFunc(s.Bridges, func(b *Bridge) bool { return b.UUID == r.UUID && f.failed[b] }) {
			continue
		}
		longest = max(longest, least)
		for _, id := range r.UUIDs("controller") {
			longest = max(longest, probes[id])
		}
	}
	return longest, nil
}
