package pass_test

import (
	"strconv"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/test/check/expect"
)

// The texts follow trace_format_rule, trace_resubmit and ofproto_trace in ofproto/ofproto-dpif.c of Open vSwitch 2.5.
const (
	oldHead   = "Bridge: br0\nFlow: tcp,in_port=1,vlan_tci=0x0000,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,tp_src=1,tp_dst=80,tcp_flags=0\n"
	oldNested = "\n\tResubmitted flow: unchanged\n\tResubmitted regs: reg0=0x0 reg1=0x0\n\tResubmitted  odp: drop\n\tResubmitted megaflow: recirc_id=0,tcp,in_port=1,nw_frag=no\n"
	oldEnd    = "\nFinal flow: unchanged\nMegaflow: recirc_id=0,tcp,in_port=1,nw_frag=no\nDatapath actions: "
)

// TestTracesOfOldReleasesAreRead reads traces in the form of Open vSwitch 2.7 and before.
func TestTracesOfOldReleasesAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		stages  []string // the bridge, the table, the match and the actions
		actions string
	}{
		"resubmit and output": {
			oldHead + "\nRule: table=0 cookie=0x5 priority=10,in_port=1\nOpenFlow actions=load:0x1->NXM_NX_REG0[],resubmit(,4)\n" + oldNested +
				"\tRule: table=4 cookie=0 tcp,tp_dst=80\n\tOpenFlow actions=output:2\n" + oldEnd + "2\n",
			[]string{"br0 0 in_port=1 10 load:0x1->NXM_NX_REG0[];resubmit(,4)", "br0 4 tcp,tp_dst=80 32768 output:2"}, "2",
		},
		"no match in a later table": {
			oldHead + "\nRule: table=0 cookie=0 priority=1\nOpenFlow actions=resubmit(,7),resubmit(,9)\n" + oldNested +
				"\tNo match\n" + oldNested + "\tNo match\n" + oldEnd + "drop\n",
			[]string{"br0 0  1 resubmit(,7);resubmit(,9)", "br0 7 miss", "br0 9 miss"}, "drop",
		},
		"no match at all": {
			oldHead + "No match, packets dropped because OFPPC_NO_PACKET_IN is set on in_port.\n\nRule: table=254 cookie=0 priority=0,reg0=0x2\nOpenFlow actions=drop\n" + oldEnd + "drop\n",
			[]string{"br0 0 miss"}, "drop",
		},
		"a patch port": {
			oldHead + "\nRule: table=0 cookie=0 priority=1\nOpenFlow actions=output:10\n" + oldNested +
				"\tRule: table=0 cookie=0 priority=0\n\tOpenFlow actions=NORMAL\n\tforwarding to learned port\n" + oldEnd + "3\n",
			[]string{"br0 0  1 output:10", " 0  0 NORMAL;-> forwarding to learned port"}, "3",
		},
		"an output to the input port": {
			oldHead + "\nRule: table=0 cookie=0 priority=1\nOpenFlow actions=output:1\nskipping output to input port\n" +
				oldEnd + "drop\n",
			[]string{"br0 0  1 output:1;>> skipping output to input port"}, "drop",
		},
	} {
		passes, err := pass.Parse(c.text)
		if err != nil || len(passes) != 1 {
			t.Fatalf("%s: %v, %d passes", name, err, len(passes))
		}
		expect.Equal(t, describe(passes[0]), c.stages, name)
		expect.Equal(t, passes[0].ActionsText, c.actions, name)
		expect.Equal(t, passes[0].Flow.Get("tp_dst"), "80", name)
	}
}

// TestOldTracesThatFailAreRead reads the lines behind the datapath actions of old releases, which have a tab.
func TestOldTracesThatFailAreRead(t *testing.T) {
	passes, err := pass.Parse(oldHead + "\nRule: table=0 cookie=0 priority=1\nOpenFlow actions=resubmit(,0)\n" + oldEnd +
		"drop\nTranslation failed (Recursion too deep), packet is dropped.\n")
	if err != nil || passes[0].Failed() != "Recursion too deep" {
		t.Errorf("%v %+v", err, passes)
	}
	passes, err = pass.Parse(oldHead + "\nRule: table=0 cookie=0 priority=1\nOpenFlow actions=CONTROLLER:65535\n" +
		oldEnd +
		"drop\nThis flow is handled by the userspace slow path because it:\n\t- Sends \"packet-in\" messages to the OpenFlow controller.\n")
	if err != nil || len(passes[0].Controllers()) != 1 || len(passes[0].SlowPath) != 1 {
		t.Errorf("%v %+v", err, passes)
	}
}

func describe(p *pass.Pass) (list []string) {
	for _, s := range p.Stages {
		if s.Miss {
			list = append(list, strings.Join([]string{s.Bridge, strconv.Itoa(s.Table), "miss"}, " "))
			continue
		}
		list = append(list, strings.Join([]string{s.Bridge, strconv.Itoa(s.Table), s.Flow, strconv.Itoa(s.Priority),
			strings.Join(s.Lines, ";")}, " "))
	}
	return list
}
