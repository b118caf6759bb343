package restore_test

import (
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
)

// nativeNode starts a node whose ovs-vswitchd builds the headers of its tunnels.
func nativeNode(t *testing.T) *liveNode {
	t.Helper()
	node := newLiveNode(t)
	node.vsctl("add-br", "br-phy", "--", "set", "Bridge", "br-phy", `other_config:hwaddr="52:54:00:00:00:01"`, "--",
		"add-port", "br-phy", "eth0",
		"--", "add-br", "br-int", "--", "add-port", "br-int", "vm",
		"--", "add-port", "br-int", "vxlan", "--", "set", "Interface", "vxlan", "type=vxlan", "options:remote_ip=10.1.0.2",
		"options:key=7",
		"--", "add-port", "br-int", "far", "--", "set", "Interface", "far", "type=geneve", "options:remote_ip=10.2.0.2",
		"--", "add-port", "br-int", "six", "--", "set", "Interface", "six", "type=gre", "options:remote_ip=\"fd00::2\"")
	node.appctl("netdev-dummy/ip4addr", "br-phy", "10.1.0.1/24")
	node.appctl("netdev-dummy/ip6addr", "br-phy", "fd00::1/64")
	for _, args := range []string{"10.1.0.0/24 br-phy", "10.2.0.0/16 br-phy 10.1.0.9", "fd00::/64 br-phy"} {
		node.appctl(append([]string{"ovs/route/add"}, strings.Fields(args)...)...)
	}
	for _, args := range []string{"10.1.0.2 52:54:00:00:01:02", "10.1.0.9 52:54:00:00:01:09",
		"fd00::2 52:54:00:00:02:02"} {
		node.appctl(append([]string{"tnl/neigh/set", "br-phy"}, strings.Fields(args)...)...)
	}
	for _, flow := range []string{"priority=9,tcp,in_port=vm,actions=vxlan", "priority=9,udp,in_port=vm,actions=far",
		"priority=9,icmp,in_port=vm,actions=six"} {
		node.ofctl("add-flow", "br-int", flow)
	}
	return node
}

// nativeReport returns the report that sos would write. Three answers of the dummy
// datapath are replaced with those of a netdev datapath: the name of its type, its
// features, and the addresses that the host's kernel would have provided.
func nativeReport(t *testing.T, node *liveNode) string {
	t.Helper()
	sos := node.report()
	for _, b := range []string{"br-phy", "br-int"} {
		write(t, sos, "ovs-appctl_dpif.show-dp-features_"+b, node.appctl("dpif/show-dp-features", b))
	}
	write(t, sos, "ovs-appctl_ovs.route.show", node.appctl("ovs/route/show")+
		"Cached: 10.1.0.1/32 dev br-phy SRC 10.1.0.1 local\nCached: fd00::1/128 dev br-phy SRC fd00::1 local\n"+
		"Cached: 127.0.0.1/32 dev lo SRC 127.0.0.1 local\n")
	return sos
}

func nativePackets() []string {
	return []string{"br-int in_port=vm,tcp", "br-int in_port=vm,udp", "br-int in_port=vm,icmp",
		"br-phy in_port=eth0,udp,dl_dst=52:54:00:00:00:01,nw_src=10.1.0.2,nw_dst=10.1.0.1,udp_dst=4789"}
}

// TestNativeTunnels checks that a replica builds the headers that the node built.
// Without the step it has no routes.
func TestNativeTunnels(t *testing.T) {
	node := nativeNode(t)
	sos := nativeReport(t, node)
	r := replay(t, sos, process.Options{})
	r.wantStep("native tunnels", report.Restored)
	r.sameShown(node, "tnl/ports/show", "-v")
	needs(t, node, r, replay(t, sos, process.Options{}, "native tunnels"), nativePackets())
}

// TestNativeTunnelsWithLocalAddress checks that the header is the same with
// local_ip if the route has that source address.
func TestNativeTunnelsWithLocalAddress(t *testing.T) {
	node := nativeNode(t)
	want := node.appctl("ofproto/trace", "--names", "br-int", "in_port=vm,tcp")
	if !strings.Contains(want, "src=10.1.0.1,dst=10.1.0.2") {
		t.Fatal(want)
	}
	node.vsctl("set", "Interface", "vxlan", "options:local_ip=10.1.0.1")
	node.vsctl("set", "Interface", "far", "options:local_ip=10.1.0.77") // no route has it
	r := replay(t, nativeReport(t, node), process.Options{})
	r.wantStep("native tunnels", report.Approximated, `tunnel "vxlan": its route has its local_ip 10.1.0.1 as source`,
		`tunnel "far": no route of the replica has its local_ip 10.1.0.77 as source`)
	if have := r.appctl("ofproto/trace", "--names", "br-int", "in_port=vm,tcp"); have != want {
		t.Errorf("live:\n%s\nin the replica:\n%s", want, have)
	}
}

// TestNativeTunnelsOfSeveralAddresses has a bridge with several addresses of one network, of
// which the kernel of the node gave one to each route: the replica sends from the same ones.
func TestNativeTunnelsOfSeveralAddresses(t *testing.T) {
	routes := func(near, far string) string {
		return "Route Table:\nCached: 10.1.0.0/24 dev br-phy SRC " + near +
			"\nCached: 10.2.0.0/16 dev br-phy GW 10.1.0.9 SRC " + far + "\nCached: fd00::/64 dev br-phy SRC fd00::3\n" +
			"Cached: 10.1.0.3/32 dev br-phy SRC 10.1.0.3 local\nCached: 10.1.0.1/32 dev br-phy SRC 10.1.0.1 local\nCached: 10.1.0.50/32 dev br-phy SRC 10.1.0.50 local\n" +
			"Cached: fd00::3/128 dev br-phy SRC fd00::3 local\nCached: fd00::1/128 dev br-phy SRC fd00::1 local\n"
	}
	node := nativeNode(t)
	sos := nativeReport(t, node)
	write(t, sos, "ovs-appctl_tnl.ports.show_-v", "Listening ports:\n")
	// TestNativeTunnels has both routes of one address.
	for _, source := range sweep.Rows([][2]string{{"10.1.0.3", "10.1.0.3"}, {"10.1.0.1", "10.1.0.1"},
		{"10.1.0.50", "10.1.0.1"}, {"10.1.0.3", "10.1.0.50"}},
		func(source [2]string) bool { return source[0] != source[1] }) {
		write(t, sos, "ovs-appctl_ovs.route.show", routes(source[0], source[1]))
		r := replay(t, sos, process.Options{})
		r.wantStep("native tunnels", report.Restored)
		for packet, want := range map[string]string{"tcp": "src=" + source[0] + ",dst=10.1.0.2",
			"udp": "src=" + source[1] + ",dst=10.2.0.2", "icmp": "src=fd00::3,dst=fd00::2"} {
			if have := r.appctl("ofproto/trace", "--names", "br-int", "in_port=vm,"+packet); !strings.Contains(have, want) {
				t.Errorf("%v: %s has not %s:\n%s", source, packet, want, have)
			}
		}
	}
}

// TestNativeTunnelsOfAddedAddresses has a node whose kernel doesn't know the addresses of
// its bridges: they were added to ovs-vswitchd, so no route is local.
func TestNativeTunnelsOfAddedAddresses(t *testing.T) {
	node := nativeNode(t)
	sos := nativeReport(t, node)
	write(t, sos, "ovs-appctl_ovs.route.show", node.appctl("ovs/route/show"))
	r := replay(t, sos, process.Options{})
	r.wantStep("native tunnels", report.Restored)
	want := node.appctl("ofproto/trace", "--names", "br-int", "in_port=vm,tcp")
	if have := r.appctl("ofproto/trace", "--names", "br-int", "in_port=vm,tcp"); have != want ||
		!strings.Contains(want, "src=10.1.0.1,dst=10.1.0.2") {
		t.Errorf("live:\n%s\nin the replica:\n%s", want, have)
	}
}

// TestNativeTunnelsNotOnKernelNodes checks that nothing is done for a node whose
// kernel builds the headers.
func TestNativeTunnelsNotOnKernelNodes(t *testing.T) {
	node := nativeNode(t)
	node.likeKernel("br-int")
	r := replay(t, node.report(), process.Options{})
	r.wantStep("native tunnels", report.Idle)
	if said := r.appctl("tnl/arp/show"); strings.Contains(said, "10.1.0.2") {
		t.Errorf("it has neighbours:\n%s", said)
	}
}
