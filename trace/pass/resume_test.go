package pass

import (
	"fmt"
	"testing"
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
	if want := "[br-ex 0 br-int 0 br-int 8 br-int 13 br-ex 0]"; fmt.Sprint(got) != want {
		t.Errorf("the stages are in %v, want %s", got, want)
	}
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
