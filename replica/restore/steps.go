package restore

import (
	"context"

	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
)

// Edits returns the steps on the database before ovs-vswitchd starts, in order.
func Edits() []Step {
	return []Step{
		{"dead ports", with(editDeadPorts)},
		{"port numbers", with(editPortNumbers)},
		{"spanning trees", with(editSpanningTrees)},
		{"port types", with(editPortTypes)},
		{"native tunnels", with(editLocalAddresses)},
		{"datapath types", with(editDatapathTypes)},
		{"fail mode", editFailMode},
		{"identity", with(editIdentity)},
		{"controllers", editControllers},
		{"monitors", with(editMonitors)},
		{"host settings", with(editHostSettings)},
		{"flood order", editFloodOrder},
		{"table names", editTableNames},
	}
}

// Steps returns the steps on the running replica, in order.
func Steps() []Step {
	return []Step{
		{"flood order", restoreFloodOrder},
		{"fail mode", restoreFailMode},
		{"datapath features", with(restoreFeatures)},
		{"datapath ports", restoreDatapathPorts},
		{"monitors", with(restoreMonitors)},
		{"port states", restorePortStates},
		{"fragments", with(restoreFragments)},
		{"spanning trees", with(restoreSpanningTrees)},
		{"native tunnels", with(restoreNativeTunnels)},
		{"TLV maps", withTables((*tables.Tables).TLVMaps)},
		{"meters", withTables((*tables.Tables).Meters)},
		{"groups", withTables((*tables.Tables).Groups)},
		{"flows", withTables((*tables.Tables).Flows)},
		{"controllers", withTables((*tables.Tables).CompareHidden)},
		{"BFD", with(restoreBFD)},
		{"CFM", with(restoreCFM)},
		{"bonds", with(restoreBonds)},
		{"learned MACs", with(restoreFDB)},
		{"liveness", with(restoreLiveness)},
		{"multicast groups", with(restoreMulticast)},
		{"clock", with(stopClock)},
	}
}

// with converts a function of the switch and the recorded texts into a step's run
// function.
func with(step func(context.Context, *Switch, *Recorded, *report.Outcome) error) func(context.Context, *Replica, *report.Outcome) error {
	return func(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
		return step(ctx, &replica.Switch, &replica.Recorded, outcome)
	}
}

// withTables converts a function that restores tables into a step's run function.
func withTables(step func(*tables.Tables, context.Context, *report.Outcome) error) func(context.Context, *Replica, *report.Outcome) error {
	return func(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
		return step(replica.tables(), ctx, outcome)
	}
}
