package follow_test

import (
	"path/filepath"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// native starts replicas of two nodes whose ovs-vswitchd builds the headers of tunnels. Node a
// has two addresses in the network of the underlay, and its route the first one; a packet to
// UDP leaves with a source that a flow sets, and one to SCTP by a tunnel with a local_ip.
func native(t *testing.T) []*host.Host {
	t.Helper()
	side := func(name, own, other, in, routes string) *host.Host {
		path := node(t, func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip="+own, "--", "add-br", "br-phy", "--", "add-port",
				"br-phy", "eth0", "--", "add-br", "br-int",
				"--", "add-port", "br-int", in, "--", "set", "Interface", in, "type=internal", "ofport_request=1",
				"--", "add-port", "br-int", "tun", "--", "set", "Interface", "tun", "type=geneve", "ofport_request=2",
				"options:key=flow", "options:remote_ip="+other,
				"--", "add-port", "br-int", "local", "--", "set", "Interface", "local", "type=vxlan", "ofport_request=3",
				"options:key=flow", "options:remote_ip="+other, "options:local_ip=10.1.0.77")
			s.Ofctl("del-flows", "br-int")
			s.Ofctl("add-flow", "br-int", "in_port=1,tcp,actions=set_field:0x7b->tun_id,output:2")
			s.Ofctl("add-flow", "br-int", "in_port=1,sctp,actions=set_field:0x7b->tun_id,output:3")
			s.Ofctl("add-flow", "br-int", "in_port=2,tun_id=0x7b,actions=output:1")
		})
		for _, bridge := range []string{"br-int", "br-phy"} {
			files.Write(t, filepath.Join(path, "recorded/bridges", bridge, workdir.RecordedFeatures), "Tunnel push pop: Yes\n")
		}
		files.Write(t, filepath.Join(path, "recorded", workdir.RecordedRoutes), routes)
		files.Write(t, filepath.Join(path, "recorded", workdir.RecordedNeighbours),
			"IP MAC Bridge\n"+other+"    52:54:00:00:00:01   br-phy\n")
		return open(t, name, path)
	}
	return []*host.Host{
		side("a", "10.1.0.2", "10.1.0.9", "p1",
			"Cached: 10.1.0.0/24 dev br-phy SRC 10.1.0.2\nCached: 10.1.0.2/32 dev br-phy SRC 10.1.0.2 local\nCached: 10.1.0.50/32 dev br-phy SRC 10.1.0.50 local\n"),
		side("b", "10.1.0.9", "10.1.0.2", "p2",
			"Cached: 10.1.0.0/24 dev br-phy SRC 10.1.0.9\nCached: 10.1.0.9/32 dev br-phy SRC 10.1.0.9 local\n"),
	}
}

// TestNativeTunnelThatTheReplicaCannotBuild follows packets into userspace tunnels: one whose
// header is that of the node, one that the replica has no route for, and one that a replica
// sends from another address than the node, as one with an older Open vSwitch does.
func TestNativeTunnelThatTheReplicaCannotBuild(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	hosts := native(t)
	from := func(protocol string) []string {
		text := protocol + ",dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1000,tp_dst=80"
		return ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, text)})
	}
	if got := from("tcp"); !leads(got, "delivered b p2") {
		t.Errorf("%q", got)
	}
	if got := from("sctp"); !leads(got, "undetermined a - the replica has no route for the tunnel, or not the source address that a flow or local_ip sets (native tunnel routing failed)") {
		t.Errorf("%q", got)
	}
	for _, command := range [][]string{{"ovs/route/del", "10.1.0.0/24"},
		{"netdev-dummy/ip4addr", "br-phy", "10.1.0.50/24"}, {"ovs/route/add", "10.1.0.0/24", "br-phy"}} {
		if _, err := hosts[0].Ask(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	if got := from("tcp"); !leads(got, "undetermined a - the replica sends the tunnel's packets to 10.1.0.9 from 10.1.0.50, and the node sent them from 10.1.0.2 (ovs/route/show)") {
		t.Errorf("%q", got)
	}
	if _, err := hosts[0].Ask(t.Context(), "tnl/neigh/flush"); err != nil {
		t.Fatal(err)
	}
	if got := from("tcp"); !leads(got, "undetermined a - the replica can't address the tunnel's next hop: neighbor cache miss for 10.1.0.9") {
		t.Errorf("%q", got)
	}
}
