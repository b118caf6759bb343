package restore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/restore"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// hidden returns a bridge's hidden flows, one per line.
func (n *liveNode) hidden(bridge string) string {
	n.t.Helper()
	var list []string
	for line := range strings.Lines(n.appctl("bridge/dump-flows", bridge)) {
		_, rule, found := strings.Cut(strings.TrimSpace(line), "priority=")
		digits, _, _ := strings.Cut(rule, ",")
		if found && len(digits) > 5 {
			list = append(list, rule)
		}
	}
	return strings.Join(list, "\n")
}

// waitFor waits until a bridge has a hidden flow of a priority.
func (n *liveNode) waitFor(bridge, priority string) {
	n.t.Helper()
	ovs.Await(n.t, "a flow of priority "+priority+" on bridge "+bridge,
		func() bool { return strings.Contains("\n"+n.hidden(bridge), "\n"+priority) },
		func() string { return n.hidden(bridge) })
}

const failOpen = "15790320"

// failingNode starts a node with a bridge that has failed open, and with one that has
// not yet given up its controllers.
func failingNode(t *testing.T) (n *liveNode, packets []string) {
	n = newLiveNode(t)
	n.vsctl("add-br", "br-o", "--", "set", "Bridge", "br-o", "fail_mode=standalone",
		`other_config:hwaddr="02:00:00:00:00:51"`,
		"--", "set-controller", "br-o", "tcp:192.0.2.66:6653", "--", "set", "Controller", "br-o",
		"connection_mode=out-of-band")
	n.likeKernel("br-o")
	n.vsctl("add-port", "br-o", "o1")
	n.vsctl("add-port", "br-o", "o2")
	n.vsctl("add-port", "br-o", "o3")
	n.appctl("time/warp", "30000", "1000")
	n.waitFor("br-o", failOpen)
	n.ofctl("add-flow", "br-o", "priority=7,udp,actions=o2")
	n.vsctl("add-br", "br-n", "--", "set-controller", "br-n", "tcp:192.0.2.67:6653", "--", "set", "Controller", "br-n",
		"connection_mode=out-of-band", "inactivity_probe=600000")
	n.vsctl("add-port", "br-n", "n1")
	n.ofctl("add-flow", "br-n", "udp,actions=n1")
	return n, []string{"br-o in_port=o1,udp", "br-o in_port=o2,arp,dl_dst=ff:ff:ff:ff:ff:ff", "br-n in_port=LOCAL,udp",
		"br-n in_port=LOCAL,tcp"}
}

func TestFailOpen(t *testing.T) {
	n, packets := failingNode(t)
	sos := n.report()
	all := isolations(t)
	for isolation, options := range all {
		t.Run(isolation, func(t *testing.T) {
			if isolation == filter && len(all) > 1 {
				sweep.Only(t, "TestInBand/filter")
			}
			failsOpen(t, n, packets, sos, options)
		})
	}
}

func failsOpen(t *testing.T, n *liveNode, packets []string, sos string, options process.Options) {
	r := replay(t, sos, options)
	r.wantStep("fail mode", report.Restored)
	r.wantStep("controllers", report.Restored)
	for _, d := range differences(n, r.liveNode, packets...) {
		t.Error(d)
	}
	if got, want := r.hidden("br-o")+r.hidden("br-n"), n.hidden("br-o"); got != want || want == "" {
		t.Errorf("hidden flows %q, want %q", got, want)
	}
	// The other bridge keeps its flows for any length of time.
	r.appctl("time/warp", "4000000", "1000000")
	if got := r.ofctl("--no-stats", "dump-flows", "br-n"); !strings.Contains(got, "udp") || r.hidden("br-n") != "" {
		t.Errorf("br-n has lost its flows: %s; hidden ones: %s", got, r.hidden("br-n"))
	}

	without := replay(t, sos, options, "fail mode")
	if !anyDiffers(n, without.liveNode, packets...) {
		t.Error("the step changes nothing")
	}
}

func TestFailOpenWithoutIsolation(t *testing.T) {
	n, packets := failingNode(t)
	r := replay(t, n.report(), process.Options{NoNamespaces: true, NoFilter: true})
	for _, d := range differences(n, r.liveNode, packets...) {
		t.Error(d)
	}
	r.wantStep("controllers", report.Approximated, "br-o: its controllers are removed",
		"br-n: its controllers are removed")
	r.connectsNowhere()
}

// connectsNowhere checks that neither a database row nor a log names an address.
func (r *replayed) connectsNowhere() {
	r.t.Helper()
	if targets := r.vsctl("--bare", "--columns=target", "list", "Controller"); strings.Contains(targets, "192.0.2.") {
		r.t.Errorf("controllers: %s", targets)
	}
	for line := range strings.Lines(r.log()) {
		if strings.Contains(line, "192.0.2.") {
			r.t.Errorf("ovs-vswitchd knows of an address: %s", line)
		}
	}
}

// inBandNode starts a node that has bridges with controllers of every kind.
func inBandNode(t *testing.T) (n *liveNode, packets []string) {
	n = newLiveNode(t)
	n.vsctl("add-br", "br-i", "--", "set", "Bridge", "br-i", "fail_mode=secure", `other_config:hwaddr="02:00:00:00:00:52"`,
		"other_config:in-band-queue=3",
		"--", "set-controller", "br-i", "tcp:192.0.2.66:6653", "ssl:192.0.2.67:6640", "ptcp:6699:127.0.0.1")
	n.likeKernel("br-i")
	n.vsctl("add-port", "br-i", "i1")
	n.vsctl("add-port", "br-i", "i2")
	n.vsctl("add-br", "br-d", "--", "set", "Bridge", "br-d", "fail_mode=secure", "other_config:disable-in-band=true", "--",
		"set-controller", "br-d", "tcp:192.0.2.66:6653")
	n.vsctl("add-br", "br-b", "--", "set", "Bridge", "br-b", "fail_mode=secure", `other_config:hwaddr="02:00:00:00:00:53"`,
		"--", "set-controller", "br-b", "tcp:192.0.2.68:6653",
		"--", "set", "Controller", "br-b", "connection_mode=out-of-band")
	n.vsctl("set-manager", "tcp:192.0.2.90:6640", "ptcp:6641:127.0.0.1")
	n.waitFor("br-i", "180008")
	n.waitFor("br-b", "180008")
	for _, bridge := range []string{"br-i", "br-d", "br-b"} {
		for _, p := range []string{"arp,dl_src=02:00:00:00:00:52,arp_op=1", "tcp,nw_dst=192.0.2.66,tp_dst=6653",
			"tcp,nw_dst=192.0.2.66,tp_dst=80", "tcp,nw_dst=192.0.2.68,tp_dst=6653", "tcp,nw_dst=192.0.2.90,tp_dst=6640"} {
			packets = append(packets, bridge+" in_port=LOCAL,"+p)
		}
	}
	return n, packets
}

func TestInBand(t *testing.T) {
	n, packets := inBandNode(t)
	sos := n.report()
	for isolation, options := range isolations(t) {
		t.Run(isolation, func(t *testing.T) { reachesInBand(t, n, packets, sos, options, isolation) })
	}
}

func reachesInBand(t *testing.T, n *liveNode, packets []string, sos string, options process.Options, isolation string) {
	r := replay(t, sos, options)
	for _, d := range differences(n, r.liveNode, packets...) {
		t.Error(d)
	}
	for _, bridge := range []string{"br-i", "br-d", "br-b"} {
		for _, d := range tableDifferences(n.hidden(bridge), r.hidden(bridge)) {
			t.Errorf("%s: %s", bridge, d)
		}
	}
	if !strings.Contains(n.hidden("br-i"), "set_queue:3") || !strings.Contains(n.hidden("br-b"), "192.0.2.90") ||
		n.hidden("br-d") != "" {
		t.Errorf("the live node lacks the hidden flows that this test needs: %s", n.hidden("br-i"))
	}
	r.wantStep("controllers", report.Restored)
	for _, remark := range r.report.Remarks {
		if strings.Contains(remark, "192.0.2.") || strings.Contains(remark, "SSL") {
			t.Errorf("the report remarks: %s", remark)
		}
	}
	logged := map[string]string{
		namespaces: "stream_tcp|ERR|tcp:192.0.2.66:6653: connect: Network is unreachable",
		filter:     "stream_tcp|ERR|tcp:192.0.2.66:6653: connect: Address family not supported by protocol",
	}[isolation]
	if !strings.Contains(r.log(), logged) {
		t.Errorf("ovs-vswitchd does not log the error that the report is to leave out: %s", r.log())
	}
	if new(restore.Replica).Expected("stream_tcp: tcp:192.0.2.66:6653: connect: Network is unreachable") {
		t.Error("an error that no step has foreseen is left out")
	}
	if !r.report.Complete() {
		t.Errorf("the report is not complete: %+v", r.report.Steps)
	}
}

func TestInBandWithoutIsolation(t *testing.T) {
	n, packets := inBandNode(t)
	r := replay(t, n.report(), process.Options{NoNamespaces: true, NoFilter: true})
	r.wantStep("controllers", report.Approximated, "br-i: its controllers are removed",
		"manager tcp:192.0.2.66:6653, to which the replica never connects, replaces the in-band controller")
	if targets := r.vsctl("--bare", "--columns=target", "list", "Controller"); strings.TrimSpace(targets) != "" {
		t.Errorf("controllers: %s", targets)
	}
	// Managers apply to every bridge, so br-b has the flows of br-i's controllers as
	// well.
	for _, bridge := range []string{"br-i", "br-d"} {
		for _, d := range tableDifferences(n.hidden(bridge), r.hidden(bridge)) {
			t.Errorf("%s: %s", bridge, d)
		}
	}
	for _, d := range differences(n, r.liveNode, packets...) {
		if !strings.HasPrefix(d, "br-b ") {
			t.Error(d)
		}
	}
	for line := range strings.Lines(r.log()) {
		if strings.Contains(line, "192.0.2.") && !strings.Contains(line, "in_band|") {
			t.Errorf("ovs-vswitchd knows of an address: %s", line)
		}
	}
}

// TestHiddenFlowsThatDiffer changes the recorded hidden flows: the MAC address of the
// next hop, which a kernel would have provided, and a controller that is in no row.
func TestHiddenFlowsThatDiffer(t *testing.T) {
	needNamespaces(t)
	n, _ := inBandNode(t)
	sos := n.report()
	path := filepath.Join(sos, "sos_commands/openvswitch/ovs-appctl_bridge.dump-flows_--offload-stats_br-i")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const counters = "duration=5s, n_packets=0, n_bytes=0, n_offload_packets=0, n_offload_bytes=0, "
	changed := counters + "priority=180004,arp,dl_src=02:00:00:00:00:fe,arp_op=1,actions=NORMAL\n" +
		counters + "priority=180007,tcp,nw_dst=192.0.2.99,tp_dst=6653,actions=NORMAL\n" + string(text)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := replay(t, sos, process.Options{})
	r.wantStep("controllers", report.Failed,
		"br-i: hidden flow priority=180004,arp,dl_src=02:00:00:00:00:fe,arp_op=1,actions=NORMAL is missing: a replica can't look up",
		"br-i: hidden flow priority=180007,tcp,nw_dst=192.0.2.99,tp_dst=6653,actions=NORMAL is missing")
}

// TestHiddenFlowsAreBounded checks that of a hundred thousand hidden flows, or twenty thousand outside of a sweep,
// only the first thousand are listed, and all are counted.
func TestHiddenFlowsAreBounded(t *testing.T) {
	many := sweep.Count(100_000, 20_000)
	node := newLiveNode(t)
	node.vsctl("add-br", "br0")
	node.likeKernel("br0")
	sos := node.report()
	var text strings.Builder
	for i := range many {
		fmt.Fprintf(&text, "duration=1s, n_packets=0, n_bytes=0, priority=180000,ip,nw_src=1.%d.%d.%d,actions=NORMAL\n",
			i>>16, i>>8&255, i&255)
	}
	write(t, sos, "ovs-appctl_bridge.dump-flows_--offload-stats_br0", text.String())
	r := replay(t, sos, process.Options{})
	r.wantStep("controllers", report.Failed, fmt.Sprint(many), "nw_src=1.0.0.0,actions=NORMAL is missing")
	for _, s := range r.report.Steps {
		if len(s.Details) > many/10 {
			t.Errorf("%s says %d things", s.Step, len(s.Details))
		}
	}
}
