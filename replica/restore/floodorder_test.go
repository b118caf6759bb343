package restore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
)

// oneTransaction starts a node whose two bridges got all their ports in one
// transaction, as os-vif adds them: ovs-vswitchd floods to them in an order of its own.
func oneTransaction(t *testing.T) *liveNode {
	t.Helper()
	node := newLiveNode(t)
	args := []string{"add-br", "br0", "--", "add-br", "br1"}
	for i := range 8 {
		args = append(args, "--", "add-port", "br0", fmt.Sprintf("p%d", i), "--", "add-port", "br1", fmt.Sprintf("q%d", i))
	}
	node.vsctl(append(args, "--", "add-port", "br0", "to1", "--", "set", "Interface", "to1", "type=patch",
		"options:peer=to0",
		"--", "add-port", "br1", "to0", "--", "set", "Interface", "to0", "type=patch", "options:peer=to1")...)
	node.likeKernel("br0")
	node.likeKernel("br1")
	return node
}

const broadcast = "dl_src=02:00:00:00:00:09,dl_dst=ff:ff:ff:ff:ff:ff,dl_type=0x1234"

// floods returns the datapath actions of broadcasts that enter by each port.
func floods(n *liveNode) string {
	n.t.Helper()
	var all strings.Builder
	for i := range 8 {
		for _, port := range []string{"p", "q"} {
			bridge := map[string]string{"p": "br0", "q": "br1"}[port]
			text := n.appctl("ofproto/trace", "--names", bridge, fmt.Sprintf("in_port=%s%d,%s", port, i, broadcast))
			_, actions, _ := strings.Cut(text, "Datapath actions: ")
			fmt.Fprintf(&all, "%s%d: %s", port, i, actions)
		}
	}
	return all.String()
}

// TestFloodOrderIsReadFromDatapathFlows checks that a replica floods in the order of the
// node if the node had a datapath flow for a broadcast from two ports.
func TestFloodOrderIsReadFromDatapathFlows(t *testing.T) {
	node := oneTransaction(t)
	for _, port := range []string{"p3", "q5", "p6", "q0"} {
		node.appctl("netdev-dummy/receive", port,
			"ffffffffffff02000000000912340000000000000000000000000000000000000000000000000000000000000000")
	}
	sos := node.report()
	r := replay(t, sos, process.Options{})
	for _, s := range r.report.Steps {
		if s.Step == "flood order" && s.Status != report.Restored {
			t.Errorf("%v", s)
		}
	}
	want := floods(node)
	if got := floods(r.liveNode); got != want {
		t.Errorf("the replica floods in another order:\n%s\nthe node:\n%s", got, want)
	}
	remove(t, sos, "ovs-appctl_dpctl.dump-flows_-m_system@ovs-system")
	r = replay(t, sos, process.Options{})
	r.wantStep("flood order", report.Unknown, "br0: no recorded datapath flow shows the order in which NORMAL floods")
	if floods(r.liveNode) == want {
		t.Error("the order is the node's without datapath flows as well: the test shows nothing")
	}
}

// TestNoFloodIsReadFromOpenFlow10 checks that a replica does not flood to a port with
// no-flood, which only the ovs-ofctl show of OpenFlow 1.0 prints, and that the report
// names its absence.
func TestNoFloodIsReadFromOpenFlow10(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "a", "--", "add-port", "br0", "b", "--", "add-port", "br0", "c")
	node.likeKernel("br0")
	node.ofctl("mod-port", "br0", "b", "no-flood")
	sos := node.report()
	remove(t, sos, "ovs-ofctl_show_br0")
	write(t, sos, "ovs-ofctl_-O_OpenFlow14_show_br0", node.ofctl("-O", "OpenFlow14", "show", "br0"))
	reachesB := func(n *liveNode) bool {
		return regexp.MustCompile(`Datapath actions: .*\bb\b`).MatchString(n.appctl("ofproto/trace", "--names", "br0",
			"in_port=a,"+broadcast))
	}
	r := replay(t, sos, process.Options{})
	r.wantStep("port states", report.Unknown, "no other version prints no-flood")
	if !reachesB(r.liveNode) {
		t.Error("the replica does not flood to b: the test shows nothing")
	}
	write(t, sos, "ovs-ofctl_-O_OpenFlow10_show_br0", node.ofctl("-O", "OpenFlow10", "show", "br0"))
	r = replay(t, sos, process.Options{})
	r.wantStep("port states", report.Restored)
	if reachesB(node) || reachesB(r.liveNode) {
		t.Error("NORMAL floods to b")
	}
}
