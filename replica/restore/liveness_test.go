package restore_test

import (
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
)

// failoverNode starts a node with a group that skips ports that are not live.
func failoverNode(t *testing.T) *liveNode {
	t.Helper()
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "a", "--", "add-port", "br0", "b", "--", "add-port", "br0", "c",
		"--", "add-port", "br0", "vm",
		"--", "set", "Bridge", "br0", "protocols=OpenFlow10,OpenFlow14,OpenFlow15")
	node.likeKernel("br0")
	port := func(name string) string {
		return strings.TrimSpace(node.vsctl("get", "Interface", name, "ofport"))
	}
	node.ofctl("-O", "OpenFlow15", "add-group", "br0",
		"group_id=1,type=ff,bucket=bucket_id:1,watch_port:"+port("a")+",actions=output:"+port("a")+
			",bucket=bucket_id:2,watch_port:"+port("b")+",actions=output:"+port("b")+",bucket=bucket_id:3,watch_port:"+port("c")+
			",actions=output:"+port("c"))
	node.ofctl("-O", "OpenFlow15", "add-flow", "br0", "in_port=vm,actions=group:1")
	return node
}

// TestLinkStates checks that a group skips a watched port without a link.
func TestLinkStates(t *testing.T) {
	node := failoverNode(t)
	node.appctl("netdev-dummy/set-admin-state", "a", "down")
	packets := []string{"br0 in_port=vm,ip"}
	sos := node.report()
	r := replay(t, sos, process.Options{})
	r.wantStep("port states", report.Restored)
	needs(t, node, r, replay(t, sos, process.Options{}, "port states", "liveness"), packets)
}

// TestLiveness checks that a group skips a port that was not live for an
// unrecorded reason.
func TestLiveness(t *testing.T) {
	node := failoverNode(t)
	sos := node.report()
	remove(t, sos, "ovs-ofctl_show_br0")
	text := node.ofctl("-O", "OpenFlow15", "show", "br0")
	head, tail, _ := strings.Cut(text, "(a): ")
	tail = strings.Replace(tail, "state:      LIVE", "state:      0", 1)
	write(t, sos, "ovs-ofctl_-O_OpenFlow15_show_br0", head+"(a): "+tail)
	trace := func(r *replayed) string { return r.appctl("ofproto/trace", "--names", "br0", "in_port=vm,ip") }
	r := replay(t, sos, process.Options{})
	r.wantStep("liveness", report.Approximated, `"a" was not live`)
	if said := trace(r); !strings.Contains(said, "Datapath actions: b\n") {
		t.Errorf("the group does not skip a port that is not live:\n%s", said)
	}
	if said := trace(replay(t, sos, process.Options{}, "liveness")); strings.Contains(said, "Datapath actions: b\n") {
		t.Error("it does so without the step as well: it is not tested")
	}
}
