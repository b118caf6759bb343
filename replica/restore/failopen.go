package restore

import (
	"context"
	"strconv"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
)

// Fail-open
//
// Cause: a standalone bridge that has been without its controllers for three
// times their inactivity probe empties its flow table and gets a hidden flow,
// NORMAL for all, above any other. On the live node that may have happened, and
// flows may have been added since.
//
// Remedy: such bridges stay standalone, and their controllers can't be reached
// from here; time is warped until they have failed open, before any flow is
// in. All others are secure, and don't (edit_failmode.go).
//
// Source: measured, OVS 3.1; flows that are added later stay.

// leastProbe is ovs-vswitchd's least inactivity probe, and its default, in ms.
const leastProbe = 5000

// restoreFailOpen lets the bridges fail open that had done so.
func restoreFailOpen(ctx context.Context, n *Node, o *report.Outcome) error {
	probe, err := n.longestProbe(ctx)
	if probe == 0 || err != nil {
		return err
	}
	// A little more than thrice, in steps, since connecting takes its turns.
	if _, err := n.appctl(ctx, "time/warp", strconv.Itoa(4*probe), strconv.Itoa(probe/5)); err != nil {
		o.Note(report.Failed, "time can't be moved to where bridges fail open: %v", err)
		return ctx.Err()
	}
	for _, b := range n.Bridges {
		if !b.failsOpen {
			continue
		}
		found := false
		err := n.until(ctx, func() (bool, error) {
			var err error
			found, err = tables.FailsOpen(ctx, tableSwitch{n}, b.Name)
			return found, err
		})
		if err != nil {
			return err
		}
		if !found {
			o.Note(report.Failed, "%s: it had failed open, and does not in the replica: the hidden flow that sends all to NORMAL is missing", b.Name)
			continue
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// longestProbe is the longest inactivity probe of the bridges that fail open,
// in ms; 0 where none does.
func (n *Node) longestProbe(ctx context.Context) (int, error) {
	rows, err := n.DB.Select(ctx, "Controller", "inactivity_probe")
	if err != nil {
		return 0, err
	}
	probes := map[string]int{}
	for _, r := range rows {
		probes[r.UUID], _ = r.Int("inactivity_probe")
	}
	bridges, err := n.DB.Select(ctx, "Bridge", "name", "controller")
	if err != nil {
		return 0, err
	}
	longest := 0
	for _, r := range bridges {
		for _, b := range n.Bridges {
			if b.Name != r.String("name") || !b.failsOpen {
				continue
			}
			longest = max(longest, leastProbe)
			for _, id := range r.UUIDs("controller") {
				longest = max(longest, probes[id])
			}
		}
	}
	return longest, nil
}

// standIn is a controller that nobody can be, for a bridge whose own ones had
// to go: a socket in the replica's own directory, which nobody makes.
func (n *Node) standIn(row string) ovsdb.Change {
	return ovsdb.Insert("Controller", row, ovsdb.Columns{"target": "unix:" + n.runDir() + "/no-controller", "connection_mode": "out-of-band"})
}
