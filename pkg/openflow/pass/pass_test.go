package pass_test

import (
	"errors"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// liveTraces returns all recorded traces, without those that are error messages.
func liveTraces(tb testing.TB) []string {
	tb.Helper()
	var list []string
	captures.Captured(tb, "[0-9][0-9][0-9]", 1<<20, func(content []byte) {
		if text := string(content); strings.Contains(text, "Datapath actions: ") {
			list = append(list, text)
		}
	})
	return list
}

func TestEachPassOfALiveTraceIsRead(t *testing.T) {
	for _, text := range liveTraces(t) {
		passes, err := pass.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if want := strings.Count(text, "\nDatapath actions: "); len(passes) != want {
			t.Errorf("%d passes, want %d\n%s", len(passes), want, text)
		}
		stages := 0
		for _, p := range passes {
			if p.ActionsText == "" || p.Final == "" || p.Megaflow == "" {
				t.Errorf("a pass without a result\n%s", p.Text)
			}
			if p.Flow.Has("recirc_id") != (p.ID != 0) {
				t.Errorf("pass %#x has the flow %s", p.ID, p.Flow)
			}
			for _, s := range p.Stages {
				stages++
				if s.Bridge == "" {
					t.Errorf("table %d has no bridge\n%s", s.Table, p.Text)
				}
				// A line of the trace holds exactly what the stage says.
				if !s.Miss && !strings.Contains(p.Text, s.Flow) {
					t.Errorf("no line has the flow %q\n%s", s.Flow, p.Text)
				}
			}
		}
		if want := strings.Count(text, ", priority ") + strings.Count(text, ". priority ") + strings.Count(text,
			". No match"); stages != want {
			t.Errorf("%d stages, want %d\n%s", stages, want, text)
		}
	}
}

const twoBridges = `Flow: tcp,in_port=4,vlan_tci=0x0000,dl_src=fa:16:3e:78:00:05,dl_dst=fa:16:3e:aa:00:03,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1,tp_dst=2,tcp_flags=0

bridge("br-int")
----------------
 0. in_port=4, priority 100, cookie 0x3c43a14
    set_field:0x8->reg13
    resubmit(,8)
 8. metadata=0x3, priority 50, cookie 0xcec5b6fd
    resubmit(,73)
    73. No match.
            drop
    move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]
     -> NXM_NX_XXREG0[111] is now 0
    resubmit(,9)
 9. priority 0
    group:5
     -> using bucket 2
    bucket 2
            output:2

            bridge("br-ex")
            ---------------
             0. priority 0
                NORMAL
                 -> no learned MAC for destination, flooding
                 >> suppressing side effects, so learn action ignored
    controller(userdata=00.00.00.02.00.00.00.00,pause)
     >>>> resubmits yielded over 64 kB of stack <<<<

Final flow: unchanged
Megaflow: recirc_id=0,eth,tcp,in_port=4
Datapath actions: 1,ct(zone=8),recirc(0x14)
This flow is handled by the userspace slow path because it:
  - Uses action(s) not supported by datapath.
`

func TestStagesBelongToTheirBridges(t *testing.T) {
	passes, err := pass.Parse(twoBridges)
	if err != nil || len(passes) != 1 {
		t.Fatal(passes, err)
	}
	p := passes[0]
	var got []string
	for _, s := range p.Stages {
		got = append(got, s.Bridge+" "+s.Flow+" "+strings.Join(s.Lines, "; "))
	}
	want := []string{
		"br-int in_port=4 set_field:0x8->reg13; resubmit(,8)",
		"br-int metadata=0x3 resubmit(,73); move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]; -> NXM_NX_XXREG0[111] is now 0; resubmit(,9)",
		"br-int  drop",
		"br-int  group:5; -> using bucket 2; bucket 2; output:2; controller(userdata=00.00.00.02.00.00.00.00,pause); >>>> resubmits yielded over 64 kB of stack <<<<",
		"br-ex  NORMAL; -> no learned MAC for destination, flooding; >> suppressing side effects, so learn action ignored",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
	if s := p.Stages[1]; s.Table != 8 || s.Priority != 50 || s.Cookie != 0xcec5b6fd || p.Stages[2].Depth != 1 ||
		!p.Stages[2].Miss {
		t.Errorf("%+v %+v", s, p.Stages[2])
	}
	if len(p.Errors) != 1 || len(p.Warnings) != 1 || len(p.SlowPath) != 1 ||
		p.SlowPath[0] != "Uses action(s) not supported by datapath" {
		t.Errorf("%q %q %q", p.Errors, p.Warnings, p.SlowPath)
	}
	if b := p.Buckets(); len(b) != 1 || b[0] != "2" {
		t.Errorf("buckets %q", b)
	}
	if c := p.Controllers(); len(c) != 1 || !c[0].Pause || c[0].Stage != 3 || c[0].Userdata != "00.00.00.02.00.00.00.00" {
		t.Errorf("controllers %+v", c)
	}
	expect.Equal(t, len(p.Actions), 3, p.Actions)
}

func TestLastStageIsWhereThePacketEnded(t *testing.T) {
	const dropped = `Flow: tcp,in_port=4

bridge("br-int")
----------------
50. metadata=0x2, priority 0, cookie 0xff733526
    set_field:0/0x1000->reg10
    resubmit(,75)
    75. No match.
            drop
    move:NXM_NX_REG10[12]->NXM_NX_XXREG0[111]
     -> NXM_NX_XXREG0[111] is now 0
    resubmit(,51)
51. metadata=0x2, priority 0, cookie 0xc3c0db66
    drop

Final flow: unchanged
Megaflow: recirc_id=0,eth,tcp
Datapath actions: drop
`
	for text, want := range map[string]int{
		dropped: 51,
		strings.Replace(dropped, "    resubmit(,51)\n51. metadata=0x2, priority 0, cookie 0xc3c0db66\n    drop\n", "", 1): 50,
		strings.Replace(dropped, "51. metadata=0x2, priority 0, cookie 0xc3c0db66", "51. No match.", 1):                   51,
	} {
		passes, err := pass.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := passes[0].Last(); !ok || s.Table != want {
			t.Errorf("table %d, want %d\n%s", s.Table, want, text)
		}
	}
}

func TestRestoredActionsBelongToNoStage(t *testing.T) {
	passes, err := pass.Parse(`Flow: recirc_id=0x1,dp_hash=0x3,eth,tcp,in_port=ANY,vlan_tci=0x0000

bridge("br-int")
----------------
    thaw
            Resuming from table 0
        Restoring actions: unroll_xlate(table=0, cookie=0),group:5
    unroll_xlate(table=0, cookie=0)
    restored state: table=0, cookie=0
    group:5
     -> using bucket 1
    bucket 1
            output:3

Final flow: unchanged
Megaflow: recirc_id=0x1,dp_hash=0x3/0xf,eth,ip,in_port=ANY,nw_frag=no
Datapath actions: 3
`)
	if err != nil {
		t.Fatal(err)
	}
	p := passes[0]
	if b := p.Buckets(); len(p.Stages) != 0 || len(b) != 1 || b[0] != "1" || p.HashMask() != 0xf {
		t.Errorf("%+v, buckets %q, mask %#x", p, b, p.HashMask())
	}
	if _, ok := p.Last(); ok {
		t.Error("the pass has a last stage")
	}
}

func TestOtherTextIsNoTrace(t *testing.T) {
	for _, text := range []string{"", "br-ex: unknown bridge\n", "Bad openflow flow syntax: in_port=6\n",
		"Flow: a b;c\n"} {
		if _, err := pass.Parse(text); !errors.Is(err, pass.ErrNoPass) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse gives any text to the parser.
func FuzzParse(f *testing.F) {
	for i, text := range liveTraces(f) {
		if i%20 == 0 {
			f.Add(text[:min(len(text), 4096)])
		}
	}
	f.Add(twoBridges)
	f.Add(oldHead + "\nRule: table=0 cookie=0x5 priority=10,in_port=1\nOpenFlow actions=resubmit(,4)\n" + oldNested +
		"\tNo match\n" + oldEnd + "2\n")
	f.Fuzz(func(t *testing.T, text string) {
		passes, err := pass.Parse(text)
		if (err == nil) != (len(passes) > 0) {
			t.Errorf("%d passes, %v", len(passes), err)
		}
		for _, p := range passes {
			if s, ok := p.Last(); ok && s.Table < 0 {
				t.Error("a table with a negative number")
			}
			for _, c := range p.Controllers() {
				if c.Stage >= 0 {
					_ = p.Stages[c.Stage]
				}
			}
			p.Buckets()
		}
	})
}
