// Package restore makes a replica faithful: ordered steps, each of which knows
// one cause for which a replica would answer otherwise than the live switch
// did, remedies it from what was collected, and says how well that went. What
// it lacks it names; it never guesses in silence.
package restore

import (
	"context"
	"fmt"

	"ovs-offline/internal/openflow"
)

// Status says how a step ended.
type Status string

// A step is Idle where the node had nothing of its kind.
const (
	Restored     Status = "restored"     // as it was on the live node, read back
	Approximated Status = "approximated" // by a default or a stand-in, which Details name
	Unknown      Status = "unknown"      // what was collected doesn't tell
	Failed       Status = "failed"       // the data was there and could not be restored
	Idle         Status = "nothing to do"
)

// Result is what a step reports.
type Result struct {
	Step    string   `json:"step"`
	Status  Status   `json:"status"`
	Details []string `json:"details,omitempty"` // the worst first
	More    int      `json:"more,omitempty"`    // that Details doesn't name
}

// Step is one remedy. Edits run on the working copy of the OVS database before
// ovs-vswitchd starts, the others on the running replica.
type Step struct {
	Name string
	// run reports through the outcome; an error is for what stops the replica.
	run func(context.Context, *Node, *outcome) error
}

// Edits are the steps before ovs-vswitchd starts, in order.
func Edits() []Step {
	return []Step{
		{"dead ports", editDeadPorts},
		{"port numbers", editPortNumbers},
		{"spanning trees", editTrees},
		{"port types", editPortTypes},
		{"native tunnels", editLocalAddresses},
		{"datapath types", editDatapathTypes},
		{"fail mode", editFailMode},
		{"identity", editIdentity},
		{"controllers", editControllers},
		{"monitors", editMonitors},
		{"host settings", editHostSettings},
		{"flood order", editFloodOrder},
	}
}

// Steps are the steps on the running replica, in order.
func Steps() []Step {
	return []Step{
		{"flood order", restoreFloodOrder},
		{"fail mode", restoreFailOpen},
		{"datapath features", restoreFeatures},
		{"datapath ports", restoreDatapathPorts},
		{"monitors", restoreMonitors},
		{"port states", restorePortStates},
		{"fragments", restoreFragments},
		{"spanning trees", restoreSpanningTrees},
		{"native tunnels", restoreNativeTunnels},
		{"TLV maps", restoreTLVMaps},
		{"meters", restoreMeters},
		{"groups", restoreGroups},
		{"flows", restoreFlows},
		{"controllers", compareHidden},
		{"learned MACs", restoreFDB},
		{"BFD", restoreBFD},
		{"CFM", restoreCFM},
		{"bonds", restoreBonds},
		{"liveness", restoreLiveness},
		{"multicast groups", restoreMulticast},
		{"clock", stopClock},
	}
}

// outcome collects what a step says of itself.
type outcome struct {
	status Status
	said   map[Status][]string
	more   int // that is not kept
}

// mostDetails bounds what is kept of each status, and longestDetail a sentence,
// in bytes: what was recorded can be a million lines of anything. All are counted.
const (
	mostDetails   = 1000
	longestDetail = 4096
)

// worst orders statuses: a step that restored one thing and failed at another failed.
func worst(s Status) int {
	switch s {
	case Failed:
		return 4
	case Unknown:
		return 3
	case Approximated:
		return 2
	case Restored:
		return 1
	}
	return 0
}

func (o *outcome) note(s Status, format string, args ...any) {
	if worst(s) > worst(o.status) {
		o.status = s
	}
	switch {
	case format == "":
	case len(o.said[s]) == mostDetails:
		o.more++
	default:
		o.said[s] = append(o.said[s], openflow.Shorten(fmt.Sprintf(format, args...), longestDetail))
	}
}

// result is what the report says of the step.
func (o *outcome) result(step string) Result {
	r := Result{Step: step, Status: o.status, More: o.more}
	for _, s := range []Status{Failed, Unknown, Approximated, Restored} {
		r.Details = append(r.Details, o.said[s]...)
	}
	return r
}

// Run runs the steps in order and records each result in the node's report.
func Run(ctx context.Context, n *Node, steps []Step) error {
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.say(s.Name)
		o := &outcome{status: Idle, said: map[Status][]string{}}
		if err := s.run(ctx, n, o); err != nil {
			return fmt.Errorf("restoring %s: %w", s.Name, err)
		}
		n.Report.Steps = append(n.Report.Steps, o.result(s.Name))
	}
	return nil
}
