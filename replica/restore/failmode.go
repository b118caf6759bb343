package restore

import (
	"context"
	"strconv"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
	"ovs-offline/workdir"
)

// editFailMode keeps each bridge in the fail mode that the live one was in.
//
// Cause: a standalone bridge without its controllers for three times their
// inactivity probe fails open: it empties its flow table and gets a hidden flow,
// NORMAL for all packets, above all others. Flows that are added later stay. One
// without controllers starts with a NORMAL flow.
//
// Remedy: a bridge that had failed open on the live node is standalone, and a time warp
// makes it fail open before flows are added. All others are secure, and never fail
// open.
//
// Source: measured with OVS 3.1.
func editFailMode(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for _, bridge := range replica.Bridges {
		failed, known, err := replica.Facts.FailedOpen(ctx, bridge.Name)
		if err != nil {
			return err
		}
		bridge.failedOpen = failed
		mode := "secure"
		switch {
		case failed:
			mode = "standalone"
		case !known && len(bridge.controllers) > 0 && bridge.FailMode != "secure":
			outcome.Note(report.Unknown, "%s: no %s was collected: the bridge is assumed not to have failed open", bridge.Name, workdir.RecordedBridgeFlows)
		}
		if bridge.FailMode != mode {
			outcome.Note(report.Restored, "")
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"fail_mode": mode}))
		}
	}
	return replica.DB.Transact(ctx, changes...)
}

// restoreFailMode makes the bridges fail open that had failed open on the live node.
func restoreFailMode(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	probe, err := longestProbe(ctx, &replica.Switch)
	if probe == 0 || err != nil {
		return err
	}
	// The clock advances by more than three probes, in small steps, because
	// ovs-vswitchd also needs iterations of its main loop to try to connect.
	if _, err := replica.appctl(ctx, "time/warp", strconv.Itoa(4*probe), strconv.Itoa(probe/5)); err != nil {
		outcome.Note(report.Failed, "the clock can't be moved to the time when bridges fail open: %v", err)
		return ctx.Err()
	}
	for _, bridge := range replica.Bridges {
		if !bridge.failedOpen {
			continue
		}
		found := false
		err := retryUntil(ctx, func() (_ bool, err error) {
			found, err = tables.FailsOpen(ctx, tableSwitch{replica}, bridge.Name)
			return found, err
		})
		if err != nil {
			return err
		}
		if !found {
			outcome.Note(report.Failed, "%s: the live bridge had failed open, the replica's does not: it lacks the hidden flow with NORMAL for all packets", bridge.Name)
			continue
		}
		outcome.Note(report.Restored, "")
	}
	return nil
}

// longestProbe returns the longest inactivity probe of the bridges that fail
// open, in ms; 0 if there are none.
func longestProbe(ctx context.Context, sw *Switch) (int, error) {
	const least = 5000 // ms; the default, and the shortest that ovs-vswitchd uses
	rows, err := sw.db.Select(ctx, "Controller", "inactivity_probe")
	if err != nil {
		return 0, err
	}
	probes := map[string]int{}
	for _, row := range rows {
		probes[row.UUID], _ = row.Int("inactivity_probe")
	}
	longest := 0
	for _, bridge := range sw.Bridges {
		if !bridge.failedOpen {
			continue
		}
		longest = max(longest, least)
		for _, id := range bridge.controllers {
			longest = max(longest, probes[id])
		}
	}
	return longest, nil
}
