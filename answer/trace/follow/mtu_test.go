package follow_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

const ping = "icmp,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,icmp_type=8,icmp_code=0"

// device is what "ip -d address" prints of the device with the addresses of pair's node a.
func device(mtu int) string {
	return fmt.Sprintf("5: eth0@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu %d qdisc noqueue state UP group default qlen 1000\n"+
		"    link/ether 52:bf:3c:b1:f4:e4 brd ff:ff:ff:ff:ff:ff\n    inet 172.16.0.1/24 scope global eth0\n    inet6 fd16::1/64 scope global nodad\n", mtu)
}

// TestTunnelsTakeWhatTheKernelTook has the largest frames that Linux 6.1 sent through tunnels
// of Open vSwitch over devices with these MTUs, found by real packets: one byte more was lost.
// For Geneve over 1500 and 9000 bytes, each of 41 sizes around the limit was sent both ways.
func TestTunnelsTakeWhatTheKernelTook(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	const route = "172.16.0.0/24 dev eth0 proto kernel scope link src 172.16.0.1"
	type recorded struct {
		address, route string
		largest        int
		next           string // what becomes of a frame with one byte more
	}
	v4 := []recorded{{device(1500), route, 1464,
		"dropped a - encapsulated, the packet has 1501 bytes, and the MTU of eth0 was 1500"}}
	v6 := []recorded{{device(1500), "", 1444, "dropped a - "}}
	for _, c := range []struct {
		kind, a, b, option string
		recorded           []recorded
	}{
		{"geneve", "172.16.0.1", "172.16.0.2", "", slices.Concat(v4, []recorded{
			{device(1500), "", 1464, "dropped a - "},
			{device(9000), route, 8964, "dropped a - "},
			{device(1500), route + " mtu 1400", 1364, "dropped a - "},
			{"", route, 1464, "undetermined a - the MTU of eth0 to 172.16.0.2 was not recorded, and the packet has 1501 bytes, encapsulated"},
			{"", "", 1464, "undetermined a - the MTU of the underlay to 172.16.0.2 was not recorded"}})},
		{"geneve", "172.16.0.1", "172.16.0.2", "options:df_default=false",
			[]recorded{{device(1500), route, 1464,
				"undetermined a - encapsulated, the packet has 1501 bytes, and the MTU of eth0 was 1500, and the tunnel has df_default=false"}}},
		{"geneve", "fd16::1", "fd16::2", "options:df_default=false", v6},
		{"vxlan", "172.16.0.1", "172.16.0.2", "", v4},
		{"vxlan", "fd16::1", "fd16::2", "", v6},
		{"gre", "172.16.0.1", "172.16.0.2", "", []recorded{{device(1500), route, 1472, "dropped a - "}}},
	} {
		t.Run(fmt.Sprintf("%s to %s %s", c.kind, c.b, c.option), func(t *testing.T) {
			pathA, pathB := pairPaths(t, c.kind, c.a, c.b, "", strings.Fields(c.option)...)
			a, b := open(t, "a", pathA), open(t, "b", pathB)
			for _, r := range c.recorded {
				files.Write(t, filepath.Join(pathA, "recorded", workdir.RecordedLinks), r.address)
				files.Write(t, filepath.Join(pathA, "recorded", workdir.RecordedKernelRoutes), r.route)
				a = again(t, a.Name, pathA)
				wanted := map[int]string{0: "delivered b p2"}
				for more := range 20 {
					end, _, _ := strings.Cut(r.next, " - ")
					wanted[r.largest-more], wanted[r.largest+1+more] = "delivered b p2", end+" - "
				}
				wanted[r.largest+1] = r.next
				for size, want := range wanted {
					if got := ends(t, []*host.Host{a, b}, follow.Options{},
						follow.Start{Node: "a", InPort: "p1", Packet: packet(t, ping), Size: size}); !leads(got, want) {
						t.Errorf("%+v: %d bytes: %q, want %s", r, size, got, want)
					}
				}
			}
		})
	}
}

// again opens a node whose replica runs, with what is recorded now.
func again(t *testing.T, name, path string) *host.Host {
	t.Helper()
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	return reopen(t, name, wd)
}

// TestEchoRepliesHaveTheSizeOfTheRequest asks for a ping of 1514 bytes from a port whose MTU
// is 1442 to one whose MTU is 1500. The request arrives, and the kernel drops the reply at the
// sender's port.
func TestEchoRepliesHaveTheSizeOfTheRequest(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("add-br", "br-int")
		for port, mtu := range map[string]string{"p1": "1442", "p2": "1500"} {
			s.Vsctl("add-port", "br-int", port, "--", "set", "Interface", port, "type=internal", "mtu_request="+mtu)
			s.Vsctl("wait-until", "Interface", port, "mtu="+mtu)
		}
		s.Ofctl("del-flows", "br-int")
		s.Ofctl("add-flow", "br-int", "in_port=p1,actions=output:p2")
		s.Ofctl("add-flow", "br-int", "in_port=p2,actions=output:p1")
	})
	tracer := follow.New([]*host.Host{open(t, "a", path)}, follow.Options{})
	for text, want := range map[string]string{ping: "dropped a p1 the packet has 1500 bytes, and the MTU of port p1 was 1442", tcp: "delivered a p1"} {
		hop, _, err := tracer.Packet(t.Context(), follow.Start{Node: "a", InPort: "p1", Packet: packet(t, text), Size: 1514})
		if err != nil || !leads(endsOf(hop), "delivered a p2") {
			t.Fatal(endsOf(hop), err)
		}
		if want := "what is behind port p1 sends 1500 bytes, though the MTU of the port was 1442"; !strings.Contains(strings.Join(hop.Assumed, "\n"), want) {
			t.Errorf("assumed %q, want %q", hop.Assumed, want)
		}
		for h, b := range hop.Ends() {
			reply, ok := follow.Reply(h, b)
			back, _, err := tracer.Packet(t.Context(), reply)
			if !ok || err != nil || !leads(endsOf(back), want) {
				t.Errorf("the reply: %q %v, want %s", endsOf(back), err, want)
			}
		}
	}
}

// TestPortsWithoutARecordedMTU has a node of which only conf.db was collected.
func TestPortsWithoutARecordedMTU(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("add-br", "br-int", "--", "add-port", "br-int", "p1", "--", "set", "Interface", "p1", "type=internal", "--",
			"add-port", "br-int", "p2", "--", "set", "Interface", "p2", "type=internal")
		s.Ofctl("del-flows", "br-int")
		s.Ofctl("add-flow", "br-int", "in_port=p1,actions=output:p2")
	})
	files.Write(t, filepath.Join(path, "recorded", workdir.RecordedListInterface), "")
	first := open(t, "a", path)
	check := func(h *host.Host, wants map[int]string) {
		t.Helper()
		for size, want := range wants {
			if got := ends(t, []*host.Host{h}, follow.Options{},
				follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp), Size: size}); !leads(got, want) {
				t.Errorf("%d bytes: %q, want %s", size, got, want)
			}
		}
	}
	check(first, map[int]string{0: "delivered a p2", 1294: "delivered a p2",
		1295: "undetermined a - the MTU of port p2 was not recorded, and the packet has 1281 bytes"})
	files.Write(t, filepath.Join(path, "recorded", workdir.RecordedLinks), "7: p2: <UP> mtu 1442 qdisc noqueue state UP\n")
	check(again(t, "a", path), map[int]string{1456: "delivered a p2",
		1457: "dropped a p2 the packet has 1443 bytes, and the MTU of port p2 was 1442"})
}
