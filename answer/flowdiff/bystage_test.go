package flowdiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// logicalOf returns the logical flows of a router with these stages, in their order. Each flow is
// "STAGE PRIORITY MATCH | ACTIONS", in which table(STAGE) stands for the number of the table of a stage.
func logicalOf(t *testing.T, stages []string, flows ...string) *Logical {
	t.Helper()
	const router = "d0000000-0000-4000-8000-000000000001"
	rows := map[string]ovndb.Row{}
	for i, text := range flows {
		for number, stage := range stages {
			text = strings.ReplaceAll(text, "table("+stage+")", fmt.Sprintf("table=%d", number))
		}
		place, actions, _ := strings.Cut(text, " | ")
		words := strings.SplitN(place, " ", 3)
		var priority int
		fmt.Sscan(words[1], &priority)
		rows[fmt.Sprintf("a000%04x-0000-4000-8000-000000000001", i)] = ovndb.Row{"pipeline": "ingress",
			"table_id": slices.Index(stages, words[0]), "priority": priority,
			"match": words[2], "actions": actions, "external_ids": ovndb.Map("stage-name", words[0]),
			"logical_datapath": ovndb.UUID(router)}
	}
	sb := ovndb.Create(t, ovs.SBSchema)
	sb.Add(ovndb.Rows{"Datapath_Binding": {router: ovndb.Row{"tunnel_key": 1,
		"external_ids": ovndb.Map("name", "r", "logical-router", router)}}, "Logical_Flow": rows})
	index, err := file.OpenIndex(t.Context(), sb.Close())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(index.Close)
	logical, err := ReadLogicalByStage(nil, index)
	if err != nil {
		t.Fatal(err)
	}
	return logical
}

// TestMoreStagesAreNoDifference compares a pipeline with one that has two more stages, one of them at its end. Only
// flows with another effect differ.
func TestMoreStagesAreNoDifference(t *testing.T) {
	before := logicalOf(t, []string{"lr_in_admission", "lr_in_routing", "lr_in_arp"},
		"lr_in_admission 50 eth.mcast | next(table(lr_in_arp));",
		"lr_in_admission 0 1 | next;",
		"lr_in_routing 24 ip4.dst == 10.0.0.0/24 | reg9[1] = 1; next;",
		"lr_in_routing 16 ip4.dst == 10.0.0.0/16 | next;",
		"lr_in_routing 5 reg9[1] == 1 && ip4 | drop;",
		"lr_in_arp 100 reg9[9] == 0 | nd_ns { output; }; output;",
		"lr_in_arp 0 1 | output;")
	after := logicalOf(t, []string{"lr_in_admission", "lr_in_check", "lr_in_routing", "lr_in_arp", "lr_in_commit"},
		"lr_in_admission 50 eth.mcast | next(pipeline=ingress, table(lr_in_arp));",
		"lr_in_admission 0 1 | next;",
		"lr_in_check 0 1 | next;",
		"lr_in_routing 24 ip4.dst == 10.0.0.0/24 | reg9[1] = 1; next;",
		"lr_in_routing 16 ip4.dst == 10.0.0.0/16 | drop;",
		"lr_in_routing 5 reg9[1] == 1 && ip4 | drop;",
		"lr_in_arp 100 reg9[9] == 0 | nd_ns { output; }; next;",
		"lr_in_arp 0 1 | next;",
		"lr_in_commit 100 reg9[10] == 1 && ip | ct_commit; output;",
		"lr_in_commit 90 (reg9[1] == 1 && ip) | ct_commit; output;",
		"lr_in_commit 0 1 | output;")
	diff := CompareLogical(before, after)
	if diff.Same != 4 || len(diff.OnlyA) > 0 || len(diff.OnlyB) != 1 || len(diff.Changed) != 1 {
		t.Fatalf("%+v", diff)
	}
	if diff.OnlyB[0].B != "lr_in_commit, priority=90, match=((reg9[1] == 1 && ip)), action=(ct_commit; next;)" {
		t.Error(diff.OnlyB[0].B)
	}
	if c := diff.Changed[0]; c.A != "lr_in_routing, priority=16, match=(ip4.dst == 10.0.0.0/16), action=(next;)" ||
		!strings.HasSuffix(c.B, "action=(drop;)") {
		t.Errorf("%+v", c)
	}
}

// TestFlagsThatNoFlowSets matches flags in registers that overlap.
func TestFlagsThatNoFlowSets(t *testing.T) {
	set := flags{}
	for _, actions := range []string{"reg9[10] = 1; next;", "reg9[3] = 0; next;",
		"reg8[0..15] = 7; reg7[4] = chk_lb_aff();", "xxreg0[32..63] = 1;", "xreg2[3] = 1;",
		"reg99999999999999999999[99999999999] = 1;"} {
		set.add(actions)
	}
	for match, never := range map[string]bool{
		"reg9[10] == 1": false, "reg9[3] == 1 && ip": true, "reg9[3] == 0 && ip": false, "ip && reg8[15] == 1": false,
		"reg8[16] == 1": true, "reg7[4] == 1": false,
		"reg2[0] == 1": false, "reg3[0] == 1": true, "reg1[0] == 1": true, "reg5[3] == 1": false, "reg4[3] == 1": true,
		"reg9[3] == 1 || ip": false, "ip4.dst == 10.0.0.1": false,
	} {
		if got := set.neverMatch(match); got != never {
			t.Errorf("%s: %t", match, got)
		}
	}
}
