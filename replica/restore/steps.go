package restore

import (
	"context"

	"ovs-offline/replica/report"
)

// Edits returns the steps on the database before ovs-vswitchd starts, in order.
func Edits() []Step {
	return []Step{
		{"dead ports", with(editDeadPorts)},
		{"port numbers", with(editPortNumbers)},
		{"spanning trees", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.trees.edit(ctx, &n.Switch, &n.Recorded, o)
		}},
		{"port types", with(editPortTypes)},
		{"native tunnels", with(editLocalAddresses)},
		{"datapath types", with(editDatapathTypes)},
		{"fail mode", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.failMode.edit(ctx, &n.Switch, n.recordedFailOpen, o)
		}},
		{"identity", with(editIdentity)},
		{"controllers", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return editControllers(ctx, &n.Switch, n.failMode.failedOpen, n.recordedInBand, o)
		}},
		{"monitors", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.monitors.edit(ctx, &n.Switch, &n.Recorded, o)
		}},
		{"host settings", with(editHostSettings)},
		{"flood order", editFloodOrder},
	}
}

// Steps returns the steps on the running replica, in order.
func Steps() []Step {
	return []Step{
		{"flood order", restoreFloodOrder},
		{"fail mode", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.failMode.restore(ctx, &n.Switch, n.failsOpen, o)
		}},
		{"datapath features", with(restoreFeatures)},
		{"datapath ports", func(ctx context.Context, n *Node, o *report.Outcome) (err error) {
			n.Report.Ports, err = restoreDatapathPorts(ctx, &n.Switch, &n.Recorded, o)
			return err
		}},
		{"monitors", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.monitors.restore(ctx, &n.Switch, &n.Recorded, o)
		}},
		{"port states", with(restorePortStates)},
		{"fragments", with(restoreFragments)},
		{"spanning trees", func(ctx context.Context, n *Node, o *report.Outcome) error {
			return n.trees.restore(ctx, &n.Switch, &n.Recorded, o)
		}},
		{"native tunnels", with(restoreNativeTunnels)},
		{"TLV maps", restoreTLVMaps},
		{"meters", restoreMeters},
		{"groups", restoreGroups},
		{"flows", restoreFlows},
		{"controllers", compareHidden},
		{"learned MACs", with(restoreFDB)},
		{"BFD", with(restoreBFD)},
		{"CFM", with(restoreCFM)},
		{"bonds", with(restoreBonds)},
		{"liveness", with(restoreLiveness)},
		{"multicast groups", with(restoreMulticast)},
		{"clock", with(stopClock)},
	}
}

// with makes a step's run function of one that needs the switch and the
// recorded texts only.
func with(f func(context.Context, *Switch, *Recorded, *report.Outcome) error) func(context.Context, *Node, *report.Outcome) error {
	return func(ctx context.Context, n *Node, o *report.Outcome) error { return f(ctx, &n.Switch, &n.Recorded, o) }
}
