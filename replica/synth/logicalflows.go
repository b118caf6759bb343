package synth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// The tables of logical flows, and of the groups of datapaths that share one. sos does not list the
// former: it prints it with lflow-list, or not at all.
const (
	logicalFlows   = "Logical_Flow"
	datapathGroups = "Logical_DP_Group"

	datapathColumn = "logical_datapath"
	groupColumn    = "logical_dp_group"
)

// groupDatapaths joins the rows of Logical_Flow that differ only in their datapath, where a row of
// Logical_DP_Group has exactly these datapaths: lflow-list prints a flow of a group once for each.
func groupDatapaths(tables map[string][]ovsdb.Record) {
	groups := map[string]string{} // the UUIDs of groups, by their datapaths
	for _, group := range tables[datapathGroups] {
		groups[datapathsOf(group)] = group.UUID
	}
	flows := map[string][]ovsdb.Record{}
	for _, flow := range tables[logicalFlows] {
		content := contentOf(flow, datapathColumn)
		flows[content] = append(flows[content], flow)
	}
	var joined []ovsdb.Record
	for _, content := range slices.Sorted(maps.Keys(flows)) {
		var datapaths []string
		for _, flow := range flows[content] {
			datapaths = append(datapaths, flow.Column(datapathColumn))
		}
		group, known := groups[oneText(datapaths)]
		if !known || len(datapaths) == 1 {
			joined = append(joined, flows[content]...)
			continue
		}
		flow := flows[content][0]
		flow.Columns = append(without(flow.Columns, datapathColumn), ovsdb.Value{Column: groupColumn, Text: group})
		joined = append(joined, flow)
	}
	tables[logicalFlows] = joined
}

// takeLogicalFlows takes the logical flows and the groups of datapaths that a run of ovn-northd made.
// Groups that were printed stay, because other rows refer to them, and all else gets UUIDs that depend
// on nothing but its content.
func takeLogicalFlows(tables, made map[string][]ovsdb.Record) {
	byDatapaths := map[string]string{}
	for _, group := range tables[datapathGroups] {
		byDatapaths[datapathsOf(group)] = group.UUID
	}
	groups := map[string]string{}
	for _, group := range made[datapathGroups] {
		datapaths := datapathsOf(group)
		if byDatapaths[datapaths] == "" {
			byDatapaths[datapaths] = ovsdb.UUIDOf(datapaths)
			tables[datapathGroups] = append(tables[datapathGroups], ovsdb.Record{UUID: byDatapaths[datapaths], Columns: group.Columns})
		}
		groups[group.UUID] = byDatapaths[datapaths]
	}
	for _, flow := range made[logicalFlows] {
		if group, known := groups[flow.Column(groupColumn)]; known {
			flow.Columns = append(without(flow.Columns, groupColumn), ovsdb.Value{Column: groupColumn, Text: group})
		}
		flow.UUID = ovsdb.UUIDOf(contentOf(flow))
		tables[logicalFlows] = append(tables[logicalFlows], flow)
	}
}

// datapathsOf returns the datapaths of a group, as one text for the same ones in any order.
func datapathsOf(group ovsdb.Record) string {
	return oneText(strings.Split(strings.Trim(group.Column("datapaths"), "[]"), ", "))
}

func oneText(uuids []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(uuids))), " ")
}

// contentOf returns what a row has besides the named columns.
func contentOf(row ovsdb.Record, columns ...string) string {
	var text strings.Builder
	for _, value := range without(row.Columns, columns...) {
		fmt.Fprintf(&text, "%s=%s\n", value.Column, value.Text)
	}
	return text.String()
}

func without(columns []ovsdb.Value, names ...string) []ovsdb.Value {
	return slices.DeleteFunc(slices.Clone(columns), func(value ovsdb.Value) bool { return slices.Contains(names, value.Column) })
}
