package restore_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// held returns a bridge's flows as the switch holds them.
func (n *liveNode) held(bridge string) string {
	n.t.Helper()
	var list []string
	for line := range strings.Lines(n.appctl("bridge/dump-flows", bridge)) {
		if _, rule, found := strings.Cut(strings.TrimSpace(line), "n_bytes=0, "); found {
			list = append(list, rule)
		}
	}
	return strings.Join(list, "\n")
}

// TestLoads checks that the replica holds loads where the live switch held loads,
// and set_field elsewhere, whatever other flows bridge/dump-flows prints.
func TestLoads(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "p1")
	node.likeKernel("br0")
	for i := range 50 {
		node.ofctl("-O", "OpenFlow10", "add-flow", "br0",
			fmt.Sprintf("priority=%d,ip,actions=load:%d->NXM_NX_REG0[0..%d],output:1", i, i, 7+8*(i%4)))
		node.ofctl("-O", "OpenFlow15", "add-flow", "br0",
			fmt.Sprintf("table=1,priority=%d,ip,actions=set_field:%d/0xff->reg0,output:1", i, i))
	}
	node.ofctl("-O", "OpenFlow15", "add-flow", "br0",
		"table=2,ip,actions=learn(table=3,load:1->NXM_NX_REG0[7]),set_field:0x80/0x80->reg1")
	sos := node.report()
	var others strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&others, "duration=1s, n_packets=0, n_bytes=0, priority=%d,tcp,actions=load:0x%x->NXM_NX_REG0[],%soutput:1\n", i, i, strings.Repeat("note:00,", i%300))
	}
	write(t, sos, "ovs-appctl_bridge.dump-flows_--offload-stats_br0",
		others.String()+node.appctl("bridge/dump-flows", "--offload-stats", "br0"))
	remove(t, sos, "ovs-ofctl_-O_OpenFlow15_dump-flows_br0")
	for _, version := range sweep.Rows([]string{"OpenFlow13", "OpenFlow14", "OpenFlow15"},
		func(version string) bool { return version != "OpenFlow14" }) {
		dump := "ovs-ofctl_-O_" + version + "_dump-flows_br0"
		write(t, sos, dump, node.ofctl("-O", version, "dump-flows", "br0"))
		r := replay(t, sos, process.Options{})
		remove(t, sos, dump)
		if live, have := node.held("br0"), r.held("br0"); live != have {
			t.Errorf("%s: the switch held\n%s\nthe replica has\n%s", version, live, have)
		}
		if counts := *r.report.Bridges[0].Counts[workdir.Flows]; counts.Restored != counts.Collected || counts.Different > 0 {
			t.Errorf("%s: %+v", version, counts)
		}
	}
}
