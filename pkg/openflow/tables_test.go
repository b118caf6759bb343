package openflow

import (
	"slices"
	"testing"
)

// TestTables checks the tables that flows name, by number and by name.
func TestTables(t *testing.T) {
	for flow, want := range map[string][]string{
		"cookie=0x0,table=classifier,priority=10 actions=resubmit(,acl)":                      {"classifier", "acl"},
		`table="my table" actions=resubmit(p1,"a,b"),goto_table:out`:                          {"my table", "a,b", "out"},
		"table=3 actions=learn(table=10,output:NXM_OF_IN_PORT[]),resubmit(5),resubmit(,4,ct)": {"3", "10", "4"},
		"priority=1 actions=drop": nil,
	} {
		if got := Tables(flow); !slices.Equal(got, want) {
			t.Errorf("%s: tables %q, want %q", flow, got, want)
		}
		named := slices.ContainsFunc(want, func(table string) bool { return table[0] < '0' || table[0] > '9' })
		if NamesTable(flow) != named {
			t.Errorf("%s: NamesTable is %v", flow, !named)
		}
	}
}
