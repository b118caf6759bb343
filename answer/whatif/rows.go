package whatif

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
)

// rowID is a northbound row, or what several rows share that have flows in common: which of them such a flow names is
// chance.
type rowID struct{ table, uuid, shared string }

// row is what the flows of the nodes have of a northbound row.
type row struct {
	words string
	uuid  string // of one row if several have these flows
	flows int
}

// rows returns the northbound rows that flows are made from.
func (m *moment) rows() (map[rowID]row, error) {
	found, known := map[rowID]row{}, map[flowdiff.Cause]rowID{}
	for _, state := range m.states {
		names, err := flowdiff.NewNames(m.nb, m.sb, state.Flows)
		if err != nil {
			return nil, err
		}
		for _, flow := range state.Flows {
			cause, _, err := names.CauseOf(flow.Text)
			if err != nil {
				return nil, err
			}
			if cause.Northbound == "" || isDatapath(cause.Northbound) {
				continue
			}
			id, ok := known[cause]
			if !ok {
				if id, err = m.identify(cause); err != nil {
					return nil, err
				}
				known[cause] = id
			}
			found[id] = row{cause.Words, cause.NorthboundUUID, found[id].flows + 1}
		}
	}
	return found, nil
}

// identify returns the row of a cause. Rows that match the same packets and do the same, as ACLs of several switches, share
// their flows: ovn-northd makes one logical flow for all these switches.
func (m *moment) identify(cause flowdiff.Cause) (rowID, error) {
	if cause.Shared {
		return rowID{table: cause.Northbound, shared: cause.Words}, nil
	}
	content, _, err := m.nb.Row(cause.Northbound, cause.NorthboundUUID)
	if err != nil {
		return rowID{}, err
	}
	if match := content.String("match"); match != "" {
		priority, _ := content.Int("priority")
		return rowID{table: cause.Northbound, shared: fmt.Sprintln(content.String("direction"), priority, match, content.String("action"))}, nil
	}
	return rowID{table: cause.Northbound, uuid: cause.NorthboundUUID}, nil
}

// isDatapath reports whether a table has rows whose flows each release names as it likes: by the switch or router, by
// one of its parts, or not at all.
func isDatapath(table string) bool { return table == "Logical_Switch" || table == "Logical_Router" }

// RowChange is a northbound row that has flows in one of two phases only.
type RowChange struct {
	Table string `json:"table"`
	UUID  string `json:"uuid"` // of one row if several have these flows
	What  string `json:"what"`
	// Before and After are the numbers of its flows on all nodes.
	Before int `json:"before"`
	After  int `json:"after"`
}

// compareRows returns the rows that have flows in one phase only.
func compareRows(before, after map[rowID]row) []RowChange {
	list := []RowChange{}
	for id, was := range before {
		if after[id].flows == 0 {
			list = append(list, RowChange{id.table, was.uuid, was.words, was.flows, 0})
		}
	}
	for id, is := range after {
		if before[id].flows == 0 {
			list = append(list, RowChange{id.table, is.uuid, is.words, 0, is.flows})
		}
	}
	slices.SortFunc(list, func(a, b RowChange) int { return strings.Compare(a.What+a.UUID, b.What+b.UUID) })
	return list
}
