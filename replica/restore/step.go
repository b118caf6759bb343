// Package restore makes a replica faithful: ordered steps, each of which knows
// one cause for which a replica would answer otherwise than the live switch
// did, remedies it from what was collected, and says how well that went. What
// it lacks it names; it never guesses in silence.
package restore

import (
	"context"
	"fmt"

	"ovs-offline/replica/report"
)

// Step is one remedy. Edits run on the working copy of the OVS database before
// ovs-vswitchd starts, the others on the running replica.
type Step struct {
	Name string
	// run reports through the outcome; an error is for what stops the replica.
	run func(context.Context, *Node, *report.Outcome) error
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

// Run runs the steps in order and records each result in the node's report.
func Run(ctx context.Context, n *Node, steps []Step) error {
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.say(s.Name)
		o := report.NewOutcome()
		if err := s.run(ctx, n, o); err != nil {
			return fmt.Errorf("restoring %s: %w", s.Name, err)
		}
		n.Report.Steps = append(n.Report.Steps, o.Result(s.Name))
	}
	return nil
}
