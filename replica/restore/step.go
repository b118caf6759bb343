// Package restore makes a replica answer like the live switch. Each step removes one
// cause for which a replica would answer differently, by means of the collected data,
// and reports the result. A step reports missing data and every default that it uses
// instead.
package restore

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Step is one cause of different answers and its remedy. Steps of Edits run on
// the working copy of the OVS database before ovs-vswitchd starts, those of
// Steps on the running replica.
type Step struct {
	Name string
	// run records results in the outcome. It returns an error only for what
	// prevents the replica as a whole.
	run func(context.Context, *Replica, *report.Outcome) error
}

// Replica is one replica to restore: the collected data, the running switch, and
// the report. The first block of fields is set by the caller, the rest by Load.
type Replica struct {
	Workdir  *workdir.Dir
	Manifest *workdir.Manifest
	Runtime  runtime.Runtime
	DB       *ovsdb.Client // of the OVS database's working copy
	Isolated bool          // the daemons can reach no network
	Loopback bool          // the daemons have a loopback interface of their own
	Report   *report.Report
	Facts    *tables.Facts     // about the collected flows
	Progress func(what string) // is called with the name of each step; may be nil

	Switch
	Recorded

	mirrors    []ovsdb.Change // restore the withheld outputs of mirrors
	tableSteps *tables.Tables // nil until the first of its steps runs
}

// Load connects the steps with the daemons and reads the bridges from the database.
func (n *Replica) Load(ctx context.Context) error {
	n.Recorded = Recorded{dir: n.Workdir, report: n.Report}
	n.Switch = Switch{db: n.DB, runtime: n.Runtime, dir: n.Workdir.VarRun(workdir.OVS), isolated: n.Isolated, loopback: n.Loopback, expected: map[string]bool{}}
	var err error
	n.Bridges, err = loadBridges(ctx, n.DB)
	return err
}

// Run runs the steps in order and adds each result to the node's report.
func Run(ctx context.Context, replica *Replica, steps []Step) error {
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if replica.Progress != nil {
			replica.Progress(step.Name)
		}
		outcome := report.NewOutcome()
		if err := step.run(ctx, replica, outcome); err != nil {
			return fmt.Errorf("restoring %s: %w", step.Name, err)
		}
		replica.Report.Steps = append(replica.Report.Steps, outcome.Result(step.Name))
	}
	return nil
}

// noteFailure reports the error of an attempt, which the format describes. It returns
// the error of ctx if ctx has ended.
func noteFailure(ctx context.Context, outcome *report.Outcome, err error, format string, args ...any) error {
	if err != nil {
		outcome.Note(report.Failed, "%s: %v", fmt.Sprintf(format, args...), err)
	}
	return ctx.Err()
}

// noteResult works like noteFailure, but also reports an attempt that succeeded.
func noteResult(ctx context.Context, outcome *report.Outcome, err error, format string, args ...any) error {
	if err == nil {
		outcome.Note(report.Restored, "")
	}
	return noteFailure(ctx, outcome, err, format, args...)
}

// Settle waits until ovs-vswitchd has applied the database, and drops the
// bridges that it did not create, for example because of a datapath type that it
// does not know. The report names them.
func (n *Replica) Settle(ctx context.Context) error {
	if err := n.reconfigure(ctx, nil); err != nil {
		return err
	}
	n.Bridges = slices.DeleteFunc(n.Bridges, func(bridge *Bridge) bool {
		if n.isCreated(bridge) {
			return false
		}
		n.Report.Lost = append(n.Report.Lost, fmt.Sprintf("bridge %q: ovs-vswitchd did not create it; for the reason see its log: %s", bridge.Name, n.Workdir.Log("ovs-vswitchd")))
		return true
	})
	return nil
}
