package whatif

import (
	"fmt"
	"maps"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot"
)

// compareFlows compares the flows of the nodes in two phases, and returns the nodes whose flows differ. It returns nil if
// the phases have different tables: a release that adds a table gives the others new numbers, and moves values to other registers.
func compareFlows(nodes []snapshot.Member, before, after moment) ([]NodeResult, error) {
	was, err := before.tables()
	if err != nil {
		return nil, err
	}
	is, err := after.tables()
	if err != nil || !maps.Equal(was, is) {
		return nil, err
	}
	differing := []NodeResult{}
	for _, node := range nodes {
		result, err := compareNode(node.Name, before, after)
		if err != nil {
			return nil, err
		}
		result.Same, result.Remade = result.Same+result.Remade, 0 // in each phase the logical flows are made anew
		if !result.Equal() {
			differing = append(differing, result)
		}
	}
	return differing, nil
}

// compareLogical compares the logical flows of two phases by the names of their stages.
func compareLogical(before, after moment) (*Changes, error) {
	was, err := flowdiff.ReadLogicalByStage(before.nb, before.sb)
	if err != nil {
		return nil, err
	}
	is, err := flowdiff.ReadLogicalByStage(after.nb, after.sb)
	if err != nil {
		return nil, err
	}
	diff := flowdiff.CompareLogical(was, is)
	changes := &Changes{Same: diff.Same}
	for _, part := range []struct {
		list []flowdiff.LogicalChange
		into *[]Difference
	}{{diff.OnlyB, &changes.Added}, {diff.OnlyA, &changes.Removed}, {diff.Changed, &changes.Changed}} {
		if *part.into, err = flowdiff.NameLogical(part.list, logicalEntryOf); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func logicalEntryOf(c flowdiff.LogicalChange) Entry {
	return Entry{Kind: flowdiff.KindLogicalFlow, Before: c.A, After: c.B}
}

// tables returns what the tables of the logical pipelines are for, and where in the integration bridges of the nodes they are.
func (m *moment) tables() (map[string]bool, error) {
	found := map[string]bool{}
	for row, err := range m.sb.Rows(ovn.LogicalFlowTable, "pipeline", "table_id", "external_ids") {
		if err != nil {
			return nil, err
		}
		table, _ := row.Int("table_id")
		found[fmt.Sprintln(row.String("pipeline"), table, row.Map("external_ids")["stage-name"])] = true
	}
	for node, state := range m.states {
		names, err := flowdiff.NewNames(m.nb, m.sb, state.Flows)
		if err != nil {
			return nil, err
		}
		found[fmt.Sprintln(node, names.Egress())] = true
	}
	return found, nil
}
