package restore_test

import (
	"fmt"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
)

// treesNode starts a node with two cables to a neighbour, which is the root of the
// spanning tree, so that one cable has to be blocked: with STP (bridge stp) and with
// RSTP (bridge rstp). The bridge alone is its own root.
func treesNode(t *testing.T) *liveNode {
	t.Helper()
	node, root := newLiveNode(t), newLiveNode(t)
	for i, b := range []string{"stp", "rstp"} {
		for _, n := range []*liveNode{node, root} {
			n.vsctl("add-br", b, "--", "add-port", b, b+"-a", "--", "add-port", b, b+"-b", "--", "add-port", b, b+"-vm")
		}
		node.vsctl("set", "Bridge", b, fmt.Sprintf(`other_config:hwaddr="52:54:00:00:01:0%d"`, i))
		root.vsctl("set", "Bridge", b, fmt.Sprintf(`other_config:hwaddr="52:54:00:00:02:0%d"`, i))
		node.link(b+"-a", root, b+"-a")
		node.link(b+"-b", root, b+"-b")
	}
	node.vsctl("add-port", "stp", "outside", "--", "set", "Port", "outside", "other_config:stp-enable=false")
	node.vsctl("add-br", "alone", "--", "add-port", "alone", "alone-vm")
	fast := []string{"stp_enable=true", "other_config:stp-forward-delay=4", "other_config:stp-hello-time=1",
		"other_config:stp-max-age=6"}
	node.vsctl(append([]string{"set", "Bridge", "alone"}, fast...)...)
	node.vsctl(append([]string{"set", "Bridge", "stp"}, fast...)...)
	root.vsctl(append([]string{"set", "Bridge", "stp", `other_config:stp-system-id="00:00:00:00:00:01"`}, fast...)...)
	rapid := []string{"set", "Bridge", "rstp", "rstp_enable=true", "other_config:rstp-forward-delay=4",
		"other_config:rstp-max-age=6"}
	node.vsctl(rapid...)
	root.vsctl(append(rapid, "other_config:rstp-priority=4096")...)
	node.likeKernel("stp")
	node.wait(`(?s)root +forwarding.*alternate +blocking|alternate +blocking.*root +forwarding`, "stp/show", "stp")
	node.wait(`designated forwarding`, "stp/show", "stp")
	node.wait(`(?s)Root +Forwarding.*Alternate +Discarding|Alternate +Discarding.*Root +Forwarding`, "rstp/show", "rstp")
	node.wait(`rstp-vm +Designated Forwarding`, "rstp/show", "rstp")
	node.wait(`alone-vm +designated forwarding`, "stp/show", "alone")
	return node
}

func treePackets() []string {
	var packets []string
	for _, b := range []string{"stp", "rstp"} {
		for _, port := range []string{b + "-a", b + "-b", b + "-vm", "LOCAL"} {
			packets = append(packets, fmt.Sprintf("%s in_port=%s,ip,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff", b, port))
		}
	}
	return append(packets, "stp in_port=outside,ip,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
		"alone in_port=alone-vm,arp")
}

// TestSpanningTrees replays spanning trees from what sos collects and from what a person adds. The live node, which
// takes seconds to settle, is the same.
func TestSpanningTrees(t *testing.T) {
	node := treesNode(t)
	t.Run("collected", func(t *testing.T) { spanningTrees(t, node) })
	t.Run("added by hand", func(t *testing.T) { filesAddedByHand(t, node) })
}

// spanningTrees checks that each port of a spanning tree is in its recorded
// state. Without the step no port forwards.
func spanningTrees(t *testing.T, node *liveNode) {
	// ovs-vswitchd writes a state to the database seconds later.
	for _, wanted := range []string{"stp_role=root, stp_sec_in_state=\"[0-9]+\", stp_state=forwarding",
		"stp_role=alternate", "rstp_port_role=Alternate"} {
		node.waitTool(wanted, "ovs-vsctl", "list", "port")
	}
	sos := node.report()
	r := replay(t, sos, process.Options{})
	r.wantStep("spanning trees", report.Approximated, `(here ["outside"])`)
	for _, s := range r.report.Steps {
		if s.Step == "spanning trees" && len(s.Details) > 1 {
			t.Errorf("it has more details: %q", s.Details)
		}
	}
	bare := replay(t, sos, process.Options{}, "spanning trees")
	needs(t, node, r, bare, treePackets())
}
