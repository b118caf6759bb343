package restore_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process"
)

// TestActionsThatTranslateDifferentlyAreNamed checks that the report names the actions of
// flows that a replica translates in another way than a node with the kernel's datapath.
func TestActionsThatTranslateDifferentlyAreNamed(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "a", "--", "add-port", "br0", "b")
	node.likeKernel("br0")
	node.ofctl("add-flow", "br0", "in_port=a,ip,actions=dec_ttl,set_queue:3,output:b")
	sos := node.report()
	flows := strings.Replace(node.ofctl("-O", "OpenFlow15", "dump-flows", "br0"), "dec_ttl", "dec_ttl()", 1) // as ovn-controller sends it
	write(t, sos, "ovs-ofctl_-O_OpenFlow15_dump-flows_br0", flows)
	r := replay(t, sos, process.Options{})
	for _, want := range []string{"skb_priority(0x10001 + N)", "for a packet with TTL 1"} {
		if !slices.ContainsFunc(r.report.Remarks, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no remark with %q: %q", want, r.report.Remarks)
		}
	}
	if trace := r.appctl("ofproto/trace", "br0", "in_port=a,ip,nw_ttl=9"); !strings.Contains(trace, "set(skb_priority(0x3))") {
		t.Errorf("the replica shows no queue:\n%s", trace)
	}
}
