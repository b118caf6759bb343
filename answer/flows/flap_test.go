package flows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
)

// packet6 returns a packet from fd00::5 to fd00::6 with a header of a protocol.
func packet6(proto int, upper string) string {
	return fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x86dd),ipv6(src=fd00::5,dst=fd00::6,label=0,proto=%d,tclass=0,hlimit=64,frag=no),%s", proto, upper)
}

// TestFlappingFlowIsNamedWithItsRule has a switch delete a flow whenever it revalidates: an echo request
// is compared with nd_target, which a flow of the datapath can't match for it. The UDP packet beside it
// keeps its flow.
func TestFlappingFlowIsNamedWithItsRule(t *testing.T) {
	live := ovs.Start(t, "--enable-dummy=override")
	live.Vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=dummy", "fail_mode=secure")
	addPort(live, "p1")
	addPort(live, "p2")
	live.Ofctl("add-flow", "br0", "cookie=0x1,priority=10,icmp6,icmp_type=135,nd_target=fd00::1,actions=drop")
	live.Ofctl("add-flow", "br0", "cookie=0x2,priority=5,tcp6,tp_dst=22,actions=drop")
	live.Ofctl("add-flow", "br0", "priority=0,actions=output:2")
	echo, datagram := packet6(58, "icmpv6(type=128,code=0)"), packet6(17, "udp(src=1,dst=2)")
	count := func(part string) (packets int) {
		for line := range strings.Lines(live.Appctl("dpctl/dump-flows", "dummy@ovs-dummy")) {
			if strings.Contains(line, part) {
				_, after, _ := strings.Cut(line, "packets:")
				_, _ = fmt.Sscanf(after, "%d", &packets)
			}
		}
		return packets
	}
	const rounds = 4
	for i := range rounds {
		live.Appctl("netdev-dummy/receive", "p1", echo)
		live.Appctl("netdev-dummy/receive", "p1", datagram)
		live.Ofctl("add-flow", "br0", fmt.Sprintf("priority=1,in_port=%d,actions=drop", 100+i))
		live.Appctl("revalidator/wait")
	}
	live.Appctl("netdev-dummy/receive", "p1", echo)
	live.Appctl("netdev-dummy/receive", "p1", datagram)
	if kept, deleted := count("proto=17"), count("icmpv6"); kept != rounds || deleted != 0 {
		t.Fatalf("the flows have %d and %d packets behind the first: want %d and 0", kept, deleted, rounds)
	}
	r := replayedSwitch(t, live)
	expect.Equal(t, []int{r.Flapping, r.Current, r.Stale, r.Untraced}, []int{1, 1, 0, 0},
		"flapping, current, stale and untraced")
	flow := r.Flows[0]
	if flow.State != Flapping || !slices.Contains(flow.Lacking, "nd_target") || !strings.Contains(flow.Text, "icmpv6") {
		t.Fatalf("%+v", flow)
	}
	if len(flow.Unwildcards) == 0 || flow.Unwildcards[0].Flow.Cookie != "0x1" || flow.Unwildcards[0].Matched {
		t.Errorf("the rule is not named: %+v", flow.Unwildcards)
	}
	for _, examiner := range flow.Unwildcards {
		expect.Equal(t, examiner.Flow.Cookie, "0x1", "the flow that is named")
	}
}

// replayedSwitch records a switch and replays its datapath flows.
func replayedSwitch(t *testing.T, live *ovs.Switch) *Replayed {
	t.Helper()
	r, err := Replay(t.Context(), []Source{{Dir: fidelity.Started(t, byHand(t, live).Path()).Workdir}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFlapOfOVNIsNamedWithItsRule sends messages of ICMPv6 from a port of OVN with port security, whose flows
// about neighbour discovery are compared with an echo request.
func TestFlapOfOVNIsNamedWithItsRule(t *testing.T) {
	const ip = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x86dd),ipv6(src=fd00::1,dst=fd00::2,label=0,proto=58,tclass=0,hlimit=%d,frag=no),"
	var packets []string
	for _, hops := range []int{225, 255} { // OVN 23.03 has 225 in its flows by mistake
		header := fmt.Sprintf(ip, hops)
		packets = append(packets, header+"icmpv6(type=128,code=0)",
			header+"icmpv6(type=135,code=0),nd(target=fd00::2,sll=02:00:00:00:00:01,tll=00:00:00:00:00:00)")
	}
	wd := plantedWith(t, func(live *ovs.Switch) {
		live.Vsctl("set", "Open_vSwitch", ".", "other_config:max-idle=600000")
		for range 20 {
			live.Appctl(append([]string{"netdev-dummy/receive", "tap-vm1"}, packets...)...)
			if strings.Count(live.Appctl("dpctl/dump-flows", "-m"), "icmpv6(") >= len(packets) {
				return
			}
		}
		t.Fatal("the switch has not got the packets")
	}, "lsp-set-port-security vm1 02:00:00:00:00:01 fd00::1 fe80::1")
	r, err := Replay(t.Context(), []Source{{Dir: fidelity.Started(t, wd.Path()).Workdir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Flows {
		t.Logf("%s %s\n%v %v", m.State, m.Text, m.Lacking, m.Unwildcards)
	}
	if r.Flapping == 0 || !strings.HasPrefix(r.Flows[0].Lacking[0], "nd_") ||
		!slices.ContainsFunc(r.Flows[0].Unwildcards,
			func(e Examiner) bool { return strings.Contains(e.String(), "port vm1") }) {
		t.Errorf("%d flapping; the port is not named: %+v", r.Flapping, r.Flows)
	}
}
