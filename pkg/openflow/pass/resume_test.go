package pass

import (
	"fmt"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestResumedPassIsInTheBridgeThatRecirculated reads passes as Open vSwitch 3.1.0 prints
// them for a packet that enters br-ex: the second one begins with br-ex, though it is
// br-int that sent the packet to conntrack.
func TestResumedPassIsInTheBridgeThatRecirculated(t *testing.T) {
	const first = `Flow: udp,in_port=1

bridge("br-ex")
---------------
 0. priority 0
    NORMAL
     -> forwarding to learned port

bridge("br-int")
----------------
 0. in_port=1, priority 100, cookie 0xa
    resubmit(,8)
 8. metadata=0x8, priority 50, cookie 0xb
    ct(table=13,zone=NXM_NX_REG11[0..15],nat)
    nat
     -> A clone of the packet is forked to recirculate. The forked pipeline will be resumed at table 13.

Final flow: unchanged
Megaflow: recirc_id=0,eth,udp,in_port=1
Datapath actions: ct(zone=6,nat),recirc(0x33)
`
	const second = `Flow: recirc_id=0x33,ct_state=new|trk,ct_zone=6,eth,udp,in_port=ANY

bridge("br-ex")
---------------
    thaw
        Resuming from table 13
13. metadata=0x8, priority 0, cookie 0x873e45ff
    output:2

bridge("br-ex")
---------------
 0. priority 0
    NORMAL

Final flow: unchanged
Megaflow: recirc_id=0x33,eth,udp,in_port=ANY
Datapath actions: 2
`
	var passes []*Pass
	for _, text := range []string{first, second} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		passes = append(passes, p[0])
	}
	passes[1].Resume(passes[0])
	var got []string
	for _, p := range passes {
		for _, s := range p.Stages {
			got = append(got, fmt.Sprint(s.Bridge, " ", s.Table))
		}
	}
	expect.Equal(t, fmt.Sprint(got), "[br-ex 0 br-int 0 br-int 8 br-int 13 br-ex 0]", "the stages are in")
}

// TestResumedActionsLeadToAnotherBridge reads a pass that resumes with the rest of the
// actions of a flow: the first stage is behind a patch port.
func TestResumedActionsLeadToAnotherBridge(t *testing.T) {
	after, err := Parse(`Flow: udp,in_port=1

bridge("br-ex")
---------------
 0. priority 0
    group:1
     -> selection method in use: dp_hash, recirculating

Final flow: unchanged
Megaflow: recirc_id=0,eth,udp,in_port=1
Datapath actions: hash(l4(0)),recirc(0x2)
`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(`Flow: recirc_id=0x2,dp_hash=0x1,eth,udp,in_port=ANY

bridge("br-ex")
---------------
    thaw
        Resuming from table 0
    group:1
     -> using bucket 0
    bucket 0
            output:2

bridge("br-int")
----------------
 0. in_port=1, priority 100, cookie 0xa
    drop

Final flow: unchanged
Megaflow: recirc_id=0x2,eth,udp,in_port=ANY
Datapath actions: drop
`)
	if err != nil {
		t.Fatal(err)
	}
	p[0].Resume(after[0])
	if len(p[0].Stages) != 1 || p[0].Stages[0].Bridge != "br-int" {
		t.Errorf("the stages are %+v", p[0].Stages)
	}
}

// TestPassAfterTheBucketOfAGroupIsInTheBridgeOfTheGroup reads the passes of a load balancer of
// a router as Open vSwitch 3.1.0 prints them, for a packet that enters br-ex: the pass of the
// bucket has no stage, and the next one goes on where the group was.
func TestPassAfterTheBucketOfAGroupIsInTheBridgeOfTheGroup(t *testing.T) {
	var passes []*Pass
	for _, text := range []string{`Flow: recirc_id=0x2,ct_state=new|trk,ct_zone=2,eth,tcp,in_port=ANY

bridge("br-ex")
---------------
    thaw
        Resuming from table 14
14. metadata=0x7, priority 0, cookie 0x6b0ba3a1
    resubmit(,15)
15. ct_state=+new-rel+trk,tcp,metadata=0x7,tp_dst=443, priority 120, cookie 0x1015ab3a
    group:13
     -> no live bucket

Final flow: unchanged
Megaflow: recirc_id=0x2,eth,tcp,in_port=ANY
Datapath actions: hash(l4(0)),recirc(0x3)
`, `Flow: recirc_id=0x3,dp_hash=0x1,ct_state=new|trk,ct_zone=2,eth,tcp,in_port=ANY

bridge("br-ex")
---------------
    thaw
            Resuming from table 0
        Restoring actions: unroll_xlate(table=15, cookie=269856826),group:13
    unroll_xlate(table=15, cookie=269856826)
    restored state: table=15, cookie=0x3ab0151000000000
    group:13
     -> using bucket 0
    bucket 0
            ct(commit,table=16,zone=NXM_NX_REG11[0..15],nat(dst=192.168.10.6:443),exec(set_field:0x2/0x2->ct_mark))
            nat(dst=192.168.10.6:443)
            set_field:0x2/0x2->ct_mark
             -> A clone of the packet is forked to recirculate. The forked pipeline will be resumed at table 16.

Final flow: unchanged
Megaflow: recirc_id=0x3,dp_hash=0x1/0xf,eth,ip,in_port=ANY,nw_frag=no
Datapath actions: ct(commit,zone=2,mark=0x2/0x2,timeout=1,nat(dst=192.168.10.6:443)),recirc(0x16)
`, `Flow: recirc_id=0x16,dp_hash=0x1,ct_state=new|trk,ct_zone=2,ct_mark=0x2,eth,tcp,in_port=4

bridge("br-ex")
---------------
    thaw
        Resuming from table 16
16. metadata=0x7, priority 0, cookie 0xae665f04
    resubmit(,17)

Final flow: unchanged
Megaflow: recirc_id=0x16,eth,tcp,in_port=4
Datapath actions: drop
`} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		passes = append(passes, p[0])
	}
	before, err := Parse("Flow: tcp,in_port=1\n\nbridge(\"br-int\")\n 8. metadata=0x7, priority 0, cookie 0xb\n    ct(table=14,zone=2,nat)\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range passes {
		p.Resume(before[0])
		before[0] = p
	}
	if stages := passes[2].Stages; len(stages) != 1 || stages[0].Bridge != "br-int" {
		t.Errorf("the stages behind the bucket are %+v, want them in br-int", stages)
	}
}
