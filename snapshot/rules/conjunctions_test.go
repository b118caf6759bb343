package rules

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestClauseIsOfTheRulesOfItsConjunctions has a clause of two conjunctions, and one of a
// conjunction that the dump does not have.
func TestClauseIsOfTheRulesOfItsConjunctions(t *testing.T) {
	all := ReadConjunctions(strings.NewReader(` cookie=0xa, table=46, priority=2002,conj_id=7,tcp,metadata=0x3 actions=resubmit(,47)
 cookie=0xb, table=46, priority=2001,conj_id=9,tcp,metadata=0x3 actions=resubmit(,47)
 cookie=0x0, table=46, priority=2002,tcp,metadata=0x3,tp_dst=22 actions=conjunction(7,2/2)
`))
	layout := Layout{Egress: 42, EgressEnd: 51}
	clause := Flow{Table: 46, Priority: 2002, Metadata: 3, Layout: layout}
	first, second := Flow{0xa, 46, 2002, 3, layout}, Flow{0xb, 46, 2001, 3, layout}
	other := Flow{Cookie: 0xc, Table: 46, Layout: layout}
	for _, c := range []struct {
		flow    Flow
		actions string
		want    []Flow
	}{
		{clause, "conjunction(7,2/2)", []Flow{first}},
		{clause, "conjunction(9,1/2),conjunction(7,2/2)", []Flow{second, first}},
		{clause, "conjunction(1,1/2),conjunction(9,1/2)", []Flow{second}},
		{clause, "conjunction(1,1/2)", []Flow{clause}},
		{clause, "drop", []Flow{clause}},
		{other, "conjunction(7,2/2)", []Flow{other}},
	} {
		expect.Equal(t, slices.Collect(all.Deciding(c.flow, c.actions)), c.want, c.actions)
		expect.Equal(t, all.Decide(c.flow, c.actions), c.want[0], c.actions)
	}
}
