package rules

import (
	"strings"
	"testing"

	"ovs-offline/answer/drift"
	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/rule"
	"ovs-offline/snapshot/rules"
	"ovs-offline/test/check/expect"
)

// numbered builds databases with the numbers of changes that the northbound one asks for and ovn-northd has confirmed in it, and that the
// southbound one has. The last transactions are so many seconds apart: positive if the northbound one is later.
func numbered(wanted, confirmed, copied int, apart int64) func(*network) {
	return func(n *network) {
		for _, row := range n.nb["NB_Global"] {
			row["nb_cfg"], row["sb_cfg"] = wanted, confirmed
		}
		for _, row := range n.sb["SB_Global"] {
			row["nb_cfg"] = copied
		}
		n.nbDate, n.sbDate = 1_700_000_000+apart, 1_700_000_000
	}
}

func TestNumbersOfChanges(t *testing.T) {
	behind := []string{"error: ovn-northd has confirmed change 1 of 9: it is 8 changes behind"}
	test(t, map[string]testCase{
		"none is behind":                         {northdBehind, numbered(9, 9, 9, 0), nil},
		"one change is on its way":               {northdBehind, numbered(9, 8, 8, 0), nil},
		"ovn-northd is behind":                   {northdBehind, numbered(9, 1, 1, 0), behind},
		"ovn-northd is behind, and chassis work": {northdBehind, numbered(9, 1, 1, -3600), behind},
		"the southbound copy is older": {northdBehind, numbered(9, 9, 1, 3600),
			[]string{"warning: the collected southbound database is older than the northbound one: it has change 1, " +
				"and ovn-northd had confirmed change 9"}},
		"it is older by seconds":         {northdBehind, numbered(9, 9, 7, 5), nil},
		"the southbound copy is newer":   {northdBehind, numbered(9, 9, 12, -3600), nil},
		"nobody has numbered any change": {northdBehind, numbered(0, 0, 0, 0), nil},
	})
}

// TestConsequencesAreListedUnderTheirCause explains findings of two nodes, of which one has the cause.
func TestConsequencesAreListedUnderTheirCause(t *testing.T) {
	drift := func(node string) rule.Finding {
		return rule.Finding{Rule: "drift", Severity: rule.Error, Nodes: rule.OnNode(node), Weight: 9}
	}
	cause := rule.Finding{Rule: "chassis-behind", Severity: rule.Error, Nodes: []string{"node1"}, Causes: []string{"drift"}}
	root := rule.Finding{Rule: "chassis-missing", Severity: rule.Error, Nodes: []string{"node1"}, Causes: []string{"chassis-behind"}}
	for name, c := range map[string]struct{ findings, want []rule.Finding }{
		"one node":  {[]rule.Finding{drift("node1"), drift("node2"), cause, drift("node1")}, []rule.Finding{cause, drift("node2")}},
		"no cause":  {[]rule.Finding{drift("node1"), drift("node2")}, []rule.Finding{drift("node1"), drift("node2")}},
		"no nodes":  {[]rule.Finding{drift(""), cause}, []rule.Finding{drift(""), cause}},
		"two steps": {[]rule.Finding{drift("node1"), cause, root}, []rule.Finding{root}},
	} {
		got := rule.Explain(c.findings)
		var rules, want []string
		for _, f := range got {
			rules = append(rules, f.Rule)
		}
		for _, f := range c.want {
			want = append(want, f.Rule)
		}
		if name == "one node" {
			expect.Equal(t, len(got[0].Explains), 2, name)
		}
		expect.Equal(t, rules, want, name)
	}
}

// TestFindingsOfDrift checks the sentences about what drift found: flows that no ovn-controller wrote, more differences than are listed, and
// differences that the databases may explain.
func TestFindingsOfDrift(t *testing.T) {
	entries := func(n int) (list []drift.Entry) {
		for range n {
			list = append(list, drift.Entry{Kind: flowdiff.KindFlow, Recorded: "table=0, priority=200,tcp,tp_dst=443 actions=drop", Packets: "37"})
		}
		return list
	}
	difference := func(words string, n int) drift.Difference {
		return drift.Difference{Cause: flowdiff.Cause{Words: words}, What: words, Count: n, Entries: entries(n)}
	}
	many := drift.Report{Bridge: "br-int"}
	for i := range 9 {
		many.Missing = append(many.Missing, difference(strings.Repeat("x", i+1), i+1))
	}
	for name, c := range map[string]struct {
		report drift.Report
		want   []string
	}{
		"none": {drift.Report{Bridge: "br-int"}, nil},
		"a foreign flow": {drift.Report{Bridge: "br-int", Extra: []drift.Difference{difference(rules.Foreign, 1)}},
			[]string{"someone added 1 flow to br-int: table=0, priority=200,tcp,tp_dst=443 actions=drop (37 packets)"}},
		"an older database": {drift.Report{Bridge: "br-int", Doubts: []string{"the SB database is older"}, Missing: many.Missing[:2]},
			[]string{"3 entries of br-int differ from what OVN computes, and this may be no fault: the SB database is older"}},
		"lines that can't be used": {drift.Report{Bridge: "br-int", Unread: 2, Missing: many.Missing[:2], Altered: many.Missing[:1]},
			[]string{"3 entries of br-int differ from what OVN computes, and this may be no fault: 2 lines of its dumps can't be used, which may have been these",
				"br-int has altered 1 flow of x"}},
		"changes on their way": {drift.Report{Bridge: "br-int", Behind: 2, Missing: many.Missing[:1]},
			[]string{"1 entry of br-int differs from what OVN computes, and this may be no fault: ovn-controller had not yet installed 2 changes of the SB database"}},
		"doubts without differences": {drift.Report{Bridge: "br-int", Doubts: []string{"the SB database is older"}}, nil},
		"many": {many, []string{"br-int lacks 9 flows of xxxxxxxxx", "br-int lacks 8 flows of xxxxxxxx", "br-int lacks 7 flows of xxxxxxx",
			"br-int lacks 6 flows of xxxxxx", "br-int differs in 5 more ways from what OVN computes, by 15 entries"}},
	} {
		var got []string
		for _, f := range driftFindings(&c.report) {
			got = append(got, f.What)
		}
		expect.Equal(t, got, c.want, name)
	}
}

// TestEffectsOfDrift checks what follows from entries that differ, by what they are for.
func TestEffectsOfDrift(t *testing.T) {
	of := func(cause flowdiff.Cause, stages ...string) drift.Difference {
		return drift.Difference{Cause: cause, What: "x", Stages: stages, Count: 1, Entries: []drift.Entry{{Kind: flowdiff.KindFlow}}}
	}
	acl, port := flowdiff.Cause{Northbound: "ACL"}, flowdiff.Cause{Northbound: "Logical_Switch_Port"}
	for name, c := range map[string]struct {
		report drift.Report
		want   string // "" for what the rule says
	}{
		"a missing ACL": {drift.Report{Missing: []drift.Difference{of(acl, "ls_in_acl")}},
			"other rules decide about its packets: what it allows may be dropped, and what it drops may pass"},
		"an altered ACL": {drift.Report{Altered: []drift.Difference{of(acl, "ls_in_acl")}}, ""},
		"a missing output": {drift.Report{Missing: []drift.Difference{of(port, "output: from logical to physical")}},
			"packets for it do not come out"},
		"a deleted row": {drift.Report{Extra: []drift.Difference{of(flowdiff.Cause{Stale: true})}},
			"packets that match go the way of a row that was deleted"},
	} {
		found := driftFindings(&c.report)
		if len(found) != 1 || found[0].Follows != c.want {
			t.Errorf("%s: %+v, want %q", name, found, c.want)
		}
	}
}
