package rules

import (
	"context"

	"ovs-offline/answer/check/rule"
	"ovs-offline/internal/show"
)

// historyOf returns the command that shows who changed a northbound row, and when.
func historyOf(uuid string) string { return "ovs-offline history nb --record " + uuid }

// listOf returns the command that shows a northbound row of the replica.
func listOf(table, uuid string) string {
	return "ovs-offline exec ovn-nbctl list " + table + " " + uuid
}

// listBound returns the command that shows the southbound row of a port of the replica.
func listBound(port string) string {
	return "ovs-offline exec ovn-sbctl find Port_Binding " + show.Word("logical_port="+quoted(port))
}

// quoted returns a name as a value for the tools of OVSDB.
func quoted(name string) string { return `"` + name + `"` }

// traceOf returns the command that follows a packet from one endpoint to another.
func traceOf(from, to string) string {
	return "ovs-offline trace " + show.Word(from) + " " + show.Word(to)
}

// ofNorthbound returns the function of a rule that looks at the logical network of each deployment whose
// northbound database was collected.
func ofNorthbound(look func(d *rule.Deployment, n *rule.Northbound, found func(rule.Finding)) error) func(context.Context, *rule.Deployment, func(rule.Finding)) error {
	return func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
		n, err := d.Northbound()
		if err != nil || d.NB == nil {
			return err
		}
		return look(d, n, found)
	}
}

// inNB and inSB name a place in a database as evidence.
func inNB(table, name, columns string) string {
	return table + " " + name + " in the northbound database: " + columns
}

func inSB(table, name, columns string) string {
	return table + " " + name + " in the southbound database: " + columns
}
