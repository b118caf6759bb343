package pass

import (
	"strings"
	"testing"
)

// nestedLookups is a pass as ovs-vswitchd prints it: a lookup in a table that returns, one in a
// clone, and the actions of a ct and of a clone, which are printed once more.
const nestedLookups = `Flow: tcp,in_port=1

bridge("br-int")
----------------
 0. in_port=1, priority 100, cookie 0x9a
    set_field:0x2->metadata
    goto_table:8
 8. metadata=0x2, priority 50, cookie 0x5e
    ct(commit,zone=NXM_NX_REG13[0..15],nat(src),exec(set_field:0/0x1->ct_mark))
    nat(src)
    set_field:0/0x1->ct_mark
     -> Sets the packet to an untracked state, and clears all the conntrack fields.
    resubmit(,73)
    73. No match.
            drop
    move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]
     -> NXM_NX_XXREG0[111] is now 0
    clone(set_field:0x3->metadata,resubmit(,78),output:2)
    set_field:0x3->metadata
    resubmit(,78)
    78. No match.
            drop
    output:2
    learn(table=69,NXM_OF_IP_SRC[])
     >> suppressing side effects, so learn action ignored
    resubmit(,9)
 9. metadata=0x2, priority 0
    NORMAL

    bridge("br-ex")
    ---------------
     0. priority 0
        drop

Final flow: unchanged
Megaflow: eth
Datapath actions: drop
`

func TestWayToALookup(t *testing.T) {
	passes, err := Parse(nestedLookups)
	if err != nil {
		t.Fatal(err)
	}
	const ct = "set_field:0x2->metadata,ct(commit,zone=NXM_NX_REG13[0..15],nat(src),exec(set_field:0/0x1->ct_mark))"
	const move = ",resubmit(,73),move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]"
	const clone = ",clone(set_field:0x3->metadata,resubmit(,78),output:2)"
	const rest = ",learn(table=69,NXM_OF_IP_SRC[]),resubmit(,9)"
	for _, test := range []struct {
		stage, line            int
		before, through, fails string
	}{
		{0, 0, "", "X", ""},
		{1, 0, "set_field:0x2->metadata", "set_field:0x2->metadata,X", ""},
		{2, 0, ct, ct + ",X,move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]" + clone + rest, ""},
		{3, 0, ct + move + ",set_field:0x3->metadata", ct + move + ",clone(set_field:0x3->metadata,X,output:2)" + rest, ""},
		{1, 11, ct + move + clone, "", ""},
		{4, 0, ct + move + clone + ",learn(table=69,NXM_OF_IP_SRC[])",
			ct + move + clone + ",learn(table=69,NXM_OF_IP_SRC[]),X", ""},
		{5, 0, "", "", `action "NORMAL" leads to a lookup`},
	} {
		way, err := passes[0].WayTo(test.stage, test.line)
		switch {
		case test.fails != "" && (err == nil || err.Error() != test.fails), test.fails == "" && err != nil:
			t.Errorf("stage %d, line %d: %v, want %q", test.stage, test.line, err, test.fails)
		case err != nil:
		case way.Before() != test.before:
			t.Errorf("stage %d, line %d: before it\n got %s\nwant %s", test.stage, test.line, way.Before(), test.before)
		case test.through != "" && way.Through([]string{"X"}) != test.through:
			t.Errorf("stage %d: through it\n got %s\nwant %s", test.stage, way.Through([]string{"X"}), test.through)
		}
	}
	grouped, err := Parse(strings.Replace(nestedLookups, "    resubmit(,73)\n", "    group:1\n", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grouped[0].WayTo(2, 0); err == nil ||
		err.Error() != `action "group:1" can't be executed again by itself` {
		t.Errorf("behind a group: %v", err)
	}
}
