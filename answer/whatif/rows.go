package whatif

import (
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/openflow"
)

// rowID is a northbound row, or what several rows share that have flows in common: which of them such a flow names is
// chance.
type rowID struct{ table, uuid, shared string }

// row is what the flows of the nodes have of a northbound row.
type row struct {
	words string
	flows int
}

// rows returns the northbound rows that flows are made from.
func (m *moment) rows() (map[rowID]row, error) {
	found := map[rowID]row{}
	for _, state := range m.states {
		names, err := flowdiff.NewNames(m.nb, m.sb, state.Flows)
		if err != nil {
			return nil, err
		}
		if err := count(found, names, state.Flows); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func count(found map[rowID]row, names *flowdiff.Names, flows []openflow.Flow) error {
	for _, flow := range flows {
		cause, _, err := names.CauseOf(flow.Text)
		if err != nil {
			return err
		}
		if cause.Northbound == "" || isDatapath(cause.Northbound) {
			continue
		}
		id := rowID{table: cause.Northbound, uuid: cause.NorthboundUUID}
		if cause.Shared {
			id = rowID{table: cause.Northbound, shared: cause.Words}
		}
		found[id] = row{cause.Words, found[id].flows + 1}
	}
	return nil
}

// isDatapath reports whether a table has rows whose flows each release names as it likes: by the switch or router, by
// one of its parts, or not at all.
func isDatapath(table string) bool { return table == "Logical_Switch" || table == "Logical_Router" }

// RowChange is a northbound row that has flows in one of two phases only.
type RowChange struct {
	Table string `json:"table"`
	UUID  string `json:"uuid,omitempty"` // "" for what several rows share
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
			list = append(list, RowChange{id.table, id.uuid, was.words, was.flows, 0})
		}
	}
	for id, is := range after {
		if before[id].flows == 0 {
			list = append(list, RowChange{id.table, id.uuid, is.words, 0, is.flows})
		}
	}
	slices.SortFunc(list, func(a, b RowChange) int { return strings.Compare(a.What+a.UUID, b.What+b.UUID) })
	return list
}
