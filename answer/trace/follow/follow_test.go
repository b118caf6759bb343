package follow_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/replica"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// node makes a workdir of a switch that setup configures, and returns its path.
func node(t testing.TB, setup func(s *ovs.Switch)) string {
	t.Helper()
	s := ovs.Start(t)
	setup(s)
	dir := ovs.Dir(t)
	files.Write(t, filepath.Join(dir, "db/ovs/conf.db"), files.Read(t, filepath.Join(s.Dir, "conf.db")))
	// A database file lacks what ovs-vswitchd writes while it runs, as the MTU.
	files.Write(t, filepath.Join(dir, "recorded", workdir.RecordedListInterface), s.Vsctl("list", "Interface"))
	for bridge := range strings.Lines(s.Vsctl("list-br")) {
		bridge = strings.TrimSpace(bridge)
		for _, dump := range []string{"flows", "groups"} {
			files.Write(t, filepath.Join(dir, "restore_flows", bridge+"."+dump+".dump"),
				s.Ofctl("-O", "OpenFlow15", "dump-"+dump, bridge))
		}
	}
	return dir
}

func packet(t testing.TB, text string) flow.Packet {
	t.Helper()
	p, err := flow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const tcp = "tcp,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tp_src=1000,tp_dst=80"

// ends returns the ends of a packet's way, "KIND NODE PORT WHY".
func ends(t testing.TB, hosts []*host.Host, options follow.Options, start follow.Start) []string {
	t.Helper()
	hop, _, err := follow.New(hosts, options).Packet(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	return endsOf(hop)
}

func endsOf(hop *follow.Hop) []string {
	var list []string
	for h, b := range hop.Ends() {
		port := "-"
		if b.Port != nil {
			port = b.Port.Name
		}
		list = append(list, fmt.Sprintf("%s %s %s %s", b.Kind, h.Node, port, b.Why))
	}
	return list
}

// leads reports whether there are as many ends as beginnings, each with its beginning.
func leads(list []string, beginnings ...string) bool {
	return slices.EqualFunc(list, beginnings, strings.HasPrefix)
}

// pair makes two nodes that are joined by a tunnel: what enters a by p1 leaves b by p2,
// and back.
func pair(t testing.TB, kind, a, b, remote string) []*host.Host {
	t.Helper()
	pathA, pathB := pairPaths(t, kind, a, b, remote)
	return []*host.Host{open(t, "a", pathA), open(t, "b", pathB)}
}

// pairPaths returns the workdirs of such nodes. options are those of the tunnels' interfaces.
func pairPaths(t testing.TB, kind, a, b, remote string, options ...string) (pathA, pathB string) {
	t.Helper()
	side := func(own, other, in, flows string) func(s *ovs.Switch) {
		return func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip="+own, "--", "add-br", "br-int", "--",
				"add-port", "br-int", in, "--", "set", "Interface", in, "type=internal", "ofport_request=1", "mtu_request=9000",
				"--",
				"add-port", "br-int", "tun", "--", "set", "Interface", "tun", "type="+kind, "ofport_request=2", "options:key=flow",
				"options:remote_ip="+other)
			s.Vsctl("wait-until", "Interface", in, "mtu=9000")
			for _, option := range options {
				s.Vsctl("set", "Interface", "tun", option)
			}
			s.Ofctl("del-flows", "br-int")
			s.Ofctl("add-flow", "br-int", "in_port=1,actions=set_field:0x7b->tun_id,"+flows+"output:2")
			s.Ofctl("add-flow", "br-int", "in_port=2,tun_id=0x7b,actions=output:1")
		}
	}
	to := func(address string) string {
		if remote != "flow" {
			return ""
		}
		field := "tun_dst"
		if strings.Contains(address, ":") {
			field = "tun_ipv6_dst"
		}
		return "set_field:" + address + "->" + field + ","
	}
	peer := func(address string) string {
		if remote == "flow" {
			return "flow"
		}
		return address
	}
	return node(t, side(a, peer(b), "p1", to(b))), node(t, side(b, peer(a), "p2", to(a)))
}

func TestTunnelsLeadToTheirPeers(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	for name, c := range map[string]struct{ kind, a, b, remote string }{
		"geneve":                         {"geneve", "192.168.0.1", "192.168.0.2", ""},
		"geneve, set by flows":           {"geneve", "192.168.0.1", "192.168.0.2", "flow"},
		"vxlan":                          {"vxlan", "192.168.0.1", "192.168.0.2", ""},
		"vxlan over IPv6":                {"vxlan", "fd00::1", "fd00::2", ""},
		"gre":                            {"gre", "192.168.0.1", "192.168.0.2", ""},
		"geneve over IPv6, set by flows": {"geneve", "fd00::1", "fd00::2", "flow"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := pair(t, c.kind, c.a, c.b, c.remote)
			got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
			if !leads(got, "delivered b p2") {
				t.Errorf("%q", got)
			}
			got = ends(t, hosts[:1], follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
			if !leads(got, "remote a - the node with the tunnel address "+c.b+" was not captured") {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestReplicaThatIsDown(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) { s.Vsctl("add-br", "br-int") })
	n, err := fidelity.Adopt(t.Context(), path, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := reopen(t, "a", n.Workdir)
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, err = follow.New([]*host.Host{h}, follow.Options{}).Packet(t.Context(),
		follow.Start{Node: "a", InPort: "br-int", Packet: packet(t, tcp)})
	if err == nil || !strings.Contains(err.Error(), "node a: the replica was stopped meanwhile: start it with: start") {
		t.Error(err)
	}
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(t.Context(), "a", wd); err == nil || !strings.Contains(err.Error(), "start it with: start") {
		t.Error(err)
	}
}

func TestPeerThatIsDownCostsItsBranch(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	hosts := pair(t, "geneve", "192.168.0.1", "192.168.0.2", "")
	down := node(t, func(s *ovs.Switch) {
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.168.0.2", "--", "add-br", "br-int", "--",
			"add-port", "br-int", "tun", "--", "set", "Interface", "tun", "type=geneve", "options:remote_ip=192.168.0.1")
	})
	n, err := fidelity.Adopt(t.Context(), down, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hosts[1] = reopen(t, "b", n.Workdir)
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
	if !leads(got, "undetermined a - node b: the replica was stopped meanwhile") {
		t.Errorf("%q", got)
	}
}

// TestNodeWithoutReplica follows packets to and from a node whose replica was never started:
// what was collected of it leads packets there, and they end there.
func TestNodeWithoutReplica(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	hosts := pair(t, "geneve", "192.168.0.1", "192.168.0.2", "")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.168.0.2", "--", "add-br", "br-int", "--",
			"add-port", "br-int", "tun", "--", "set", "Interface", "tun", "type=geneve", "options:remote_ip=192.168.0.1", "--",
			"add-port", "br-int", "p2", "--", "set", "Interface", "p2", "type=internal", "ofport_request=7")
	})
	wd, err := workdir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = host.Open(t.Context(), "b", wd)
	down, ok := errors.AsType[*host.UnavailableError](err)
	if !ok {
		t.Fatal(err)
	}
	if hosts[1], err = host.OpenAbsent(t.Context(), "b", wd, down); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hosts[1].Close)
	if p, ok := hosts[1].Numbered("br-int", 7); !ok || p.Name != "p2" {
		t.Errorf("port 7 of br-int is %+v", p)
	}
	for node, port := range map[string]string{"a": "p1", "b": "p2"} {
		got := ends(t, hosts, follow.Options{}, follow.Start{Node: node, InPort: port, Packet: packet(t, tcp)})
		if len(got) != 1 || !leads(got, "undetermined "+node) ||
			!strings.HasSuffix(got[0], "- node b: its replica does not run") {
			t.Errorf("from %s: %q", node, got)
		}
	}
	// A node without a tunnel from the sender drops the packet, whether its replica runs or not.
	path = node(t, func(s *ovs.Switch) {
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.168.0.2", "--", "add-br", "br-int")
	})
	if wd, err = workdir.Find(path); err != nil {
		t.Fatal(err)
	}
	if hosts[1], err = host.OpenAbsent(t.Context(), "b", wd, down); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hosts[1].Close)
	if got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)}); !leads(got,
		"dropped a - node b has no geneve tunnel from 192.168.0.1") {
		t.Errorf("%q", got)
	}
}

// single starts a replica of a node with a bridge br-int, ports p1 to p4, and flows.
func single(t testing.TB, groups []string, flows ...string) []*host.Host {
	t.Helper()
	return []*host.Host{open(t, "a", node(t, fourPorts(groups, flows...)))}
}

// fourPorts makes a bridge br-int with ports p1 to p4, groups and flows.
func fourPorts(groups []string, flows ...string) func(s *ovs.Switch) {
	return func(s *ovs.Switch) {
		s.Vsctl("add-br", "br-int")
		for i := range 4 {
			p := fmt.Sprintf("p%d", i+1)
			s.Vsctl("add-port", "br-int", p, "--", "set", "Interface", p, "type=internal", fmt.Sprintf("ofport_request=%d", i+1))
			s.Vsctl("wait-until", "Interface", p, "mtu=1500")
		}
		s.Ofctl("del-flows", "br-int")
		for _, g := range groups {
			s.Ofctl("-O", "OpenFlow15", "add-group", "br-int", g)
		}
		for _, f := range flows {
			s.Ofctl("-O", "OpenFlow15", "add-flow", "br-int", f)
		}
	}
}

func TestBucketsAreAlternatives(t *testing.T) {
	hosts := single(t, []string{"group_id=5,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=output:2,bucket=bucket_id:1,weight:100,actions=output:3,bucket=bucket_id:2,weight:100,actions=set_field:10.9.9.9->ip_dst,output:3"},
		"in_port=1,ip,actions=group:5")
	start := follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)}
	for range 2 { // the second question knows the hashes
		hop, _, err := follow.New(hosts, follow.Options{}).Packet(t.Context(), start)
		if err != nil {
			t.Fatal(err)
		}
		var choices []string
		for _, b := range hop.Branches {
			choices = append(choices, b.Choice)
		}
		slices.Sort(choices)
		got := endsOf(hop)
		slices.Sort(got)
		if !slices.Equal(choices, []string{"bucket 0", "bucket 1", "bucket 2"}) ||
			!leads(got, "delivered a p2", "delivered a p3", "delivered a p3") {
			t.Errorf("%q %q", choices, got)
		}
	}
	if got := ends(t, hosts, follow.Options{Bucket: "0"}, start); !leads(got, "delivered a p2") {
		t.Errorf("%q", got)
	}
}

func TestPacketsOfEachSize(t *testing.T) {
	hosts := single(t, nil, "table=0,in_port=1,actions=check_pkt_larger(1000)->NXM_NX_REG0[0],resubmit(,1)",
		"table=1,reg0=0,actions=output:2", "table=1,reg0=1,actions=output:3")
	for size, want := range map[int]string{0: "delivered a p2", 1000: "delivered a p2", 1001: "delivered a p3"} {
		if got := ends(t, hosts, follow.Options{},
			follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp), Size: size}); !leads(got, want) {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
	got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp), Size: 9000})
	if !leads(got, "dropped a p3 the packet has 8986 bytes, and the MTU of port p3 was 1500") {
		t.Errorf("%q", got)
	}
}

func TestReplyHasTheStateThatTheFirstPacketLeft(t *testing.T) {
	hosts := single(t, nil,
		"table=0,in_port=1,tcp,actions=ct(commit,zone=5,nat(dst=10.0.0.9:8080),table=1)",
		"table=0,in_port=2,tcp,actions=ct(zone=5,nat,table=2)",
		"table=1,tcp,nw_dst=10.0.0.9,actions=output:2",
		"table=2,ct_state=+est+rpl,tcp,nw_src=10.0.0.2,tp_src=80,actions=output:1",
		"table=2,priority=1,actions=output:3")
	tracer := follow.New(hosts, follow.Options{})
	hop, state, err := tracer.Packet(t.Context(), follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
	if err != nil {
		t.Fatal(err)
	}
	var reply follow.Start
	for h, b := range hop.Ends() {
		var ok bool
		if reply, ok = follow.Reply(h, b); !ok {
			t.Errorf("nothing answers %+v", b)
		}
	}
	if state == nil || reply.InPort != "p2" || reply.Packet.Get("nw_src") != "10.0.0.9" ||
		reply.Packet.Get("tp_src") != "8080" || reply.Packet.Get("tcp_flags") != "syn|ack" {
		t.Errorf("%+v", reply)
	}
	back, _, err := tracer.Packet(t.Context(), reply)
	if err != nil || !leads(endsOf(back), "delivered a p1") {
		t.Errorf("%q %v", endsOf(back), err)
	}
	reply.State = nil // without it the SYN|ACK is invalid
	if back, _, err = tracer.Packet(t.Context(), reply); err != nil || !leads(endsOf(back), "delivered a p3") {
		t.Errorf("%q %v", endsOf(back), err)
	}
}

func TestStatesThatTheQuestionNames(t *testing.T) {
	hosts := single(t, nil, "table=0,tcp,actions=ct(zone=5,table=1)", "table=1,ct_state=+est,actions=output:2",
		"table=1,ct_state=+new,actions=output:3")
	est, _ := conntrack.ParseFlags("est")
	start := follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)}
	for _, c := range []struct {
		options follow.Options
		want    string
	}{{follow.Options{States: []conntrack.Flags{est}}, "delivered a p2"}, {follow.Options{New: true}, "delivered a p3"},
		{follow.Options{}, "delivered a p3"}} {
		if got := ends(t, hosts, c.options, start); !leads(got, c.want) {
			t.Errorf("%q, want %s", got, c.want)
		}
	}
}

func TestEndsWithoutDelivery(t *testing.T) {
	hosts := single(t, nil,
		"table=0,priority=10,tcp,tp_dst=1,actions=resubmit(,5)",
		"table=0,priority=10,tcp,tp_dst=2,actions=drop",
		"table=0,priority=10,tcp,tp_dst=3,actions=controller(userdata=00.00.00.0a.00.00.00.00)",
		"table=0,priority=10,tcp,tp_dst=4,actions=controller(userdata=00.00.00.02.00.00.00.00,pause),output:2",
		"table=0,priority=10,tcp,tp_dst=5,actions=controller(userdata=00.00.00.07.00.00.00.00),output:2",
		"table=0,priority=10,tcp,tp_dst=6,actions=dec_ttl,output:2",
		"table=0,priority=10,tcp,tp_dst=7,actions=resubmit(,0)",
		"table=0,priority=10,tcp,tp_dst=8,actions=controller(userdata=00.00.00.07.00.00.00.00)",
		"table=0,priority=10,tcp,tp_dst=9,actions=controller(userdata=00.00.00.07.00.00.00.00),controller(userdata=00.00.00.16.00.00.00.00)",
		"table=0,priority=10,tcp,tp_dst=10,actions=output:2,controller(userdata=00.00.00.1b.00.00.00.00.00.00.00.2a.00.00.80.00.27)")
	for port, want := range map[string][]string{
		"1": {"dropped a - no flow of table 5 of br-int matches"},
		"2": {"dropped a - no action sends the packet anywhere"},
		"3": {"generated a - OVN makes an ICMP error"},
		"4": {"generated a - OVN makes a DHCP answer"},
		"5": {"copied a - OVN makes a line of the ACL log", "delivered a p2"},
		"6": {"dropped a - the TTL has expired"},
		"7": {"dropped a - ovs-vswitchd drops the packet: "},
		"8": {"copied a - OVN makes a line of the ACL log", "dropped a - no action sends the packet anywhere"},
		"9": {"copied a - OVN makes a line of the ACL log",
			"generated a - OVN makes a TCP reset to 10.0.0.1"}, // an ACL that logs and rejects
		"10": {"delivered a p2", "undetermined a - ovn-controller makes the copies for further ports of a large multicast group"},
	} {
		p := packet(t, tcp)
		p.Set("tp_dst", port)
		p.Set("nw_ttl", "1")
		if got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: p}); !leads(got, want...) {
			t.Errorf("port %s: %q, want %q", port, got, want)
		}
	}
}

func TestPhysicalNetworksReachTheirNodes(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	side := func(port string) func(s *ovs.Switch) {
		return func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet1:br-ex", "--", "add-br", "br-ex", "--",
				"add-port", "br-ex", "eth1", "--", "add-port", "br-ex", port, "--", "set", "Interface", port, "type=internal",
				"external_ids:iface-id="+port)
			s.Ofctl("del-flows", "br-ex")
			s.Ofctl("add-flow", "br-ex", "in_port="+port+",actions=mod_vlan_vid:120,output:eth1")
			s.Ofctl("add-flow", "br-ex", "in_port=eth1,dl_vlan=120,dl_dst=0a:00:00:00:00:02,actions=strip_vlan,output:"+port)
		}
	}
	hosts := []*host.Host{open(t, "a", node(t, side("p1"))), open(t, "b", node(t, side("p2"))),
		open(t, "c", node(t, func(s *ovs.Switch) { s.Vsctl("add-br", "br-ex", "--", "add-port", "br-ex", "eth1") }))}
	got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
	if !leads(got, "delivered a eth1", "delivered b p2") {
		t.Errorf("%q", got)
	}
	p := packet(t, tcp)
	p.PushVLAN("120", "0")
	got = ends(t, hosts, follow.Options{}, follow.Start{Network: "physnet1", Packet: p})
	if !leads(got, "delivered a p1", "delivered b p2") {
		t.Errorf("%q", got)
	}
}

// TestFurtherPortOfANetworkIsNoLoop floods a packet over three nodes that have one more port beside
// the one to the others: a copy leaves by each once, as it does on the wire (OVN's test "external
// logical port" has such nodes).
func TestFurtherPortOfANetworkIsNoLoop(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	side := func(s *ovs.Switch) {
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet1:br-ex", "--", "add-br", "br-ex", "--",
			"add-port", "br-ex", "eth1", "--", "set", "Interface", "eth1", "ofport_request=1", "--",
			"add-port", "br-ex", "eth2", "--", "set", "Interface", "eth2", "ofport_request=2")
	}
	hosts := []*host.Host{open(t, "a", node(t, side)), open(t, "b", node(t, side)), open(t, "c", node(t, side))}
	got := ends(t, hosts, follow.Options{},
		follow.Start{Node: "a", InPort: "eth2",
			Packet: packet(t, strings.ReplaceAll(tcp, "0a:00:00:00:00:02", "ff:ff:ff:ff:ff:ff"))})
	if !leads(got, "delivered a br-ex", "delivered a eth1", "delivered b br-ex", "delivered b eth2", "delivered c br-ex",
		"delivered c eth2") {
		t.Errorf("%q", got)
	}
}

// TestBridgesOfOneNodeOnOneNetwork has two ovn-controllers on one host, whose bridges are on one wire, as
// in OVN's test "multiple controllers on the same host can talk to each other".
func TestBridgesOfOneNodeOnOneNetwork(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=c1", "external_ids:ovn-bridge-mappings-c1=physnet1:br-1",
			"external_ids:ovn-bridge-mappings-c2=physnet1:br-2", "--",
			"add-br", "br-1", "--", "add-port", "br-1", "eth1", "--", "add-port", "br-1", "p1", "--", "set", "Interface", "p1",
			"type=internal", "--",
			"add-br", "br-2", "--", "add-port", "br-2", "eth2")
	})
	got := ends(t, []*host.Host{open(t, "a", path)}, follow.Options{},
		follow.Start{Node: "a", InPort: "p1", Packet: packet(t,
			strings.ReplaceAll(tcp, "0a:00:00:00:00:02", "ff:ff:ff:ff:ff:ff"))})
	if !leads(got, "delivered a br-1", "delivered a eth1", "delivered a br-2") {
		t.Errorf("%q", got)
	}
}

// TestBridgesOnUnknownWiresAreNamed sends a broadcast into a physical network beside a node whose bridge no
// mapping names: it may be on the same wire.
func TestBridgesOnUnknownWiresAreNamed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	side := func(mapping string) string {
		return node(t, func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings="+mapping, "--", "add-br", "br-ex", "--",
				"add-port", "br-ex", "eth1", "--",
				"add-port", "br-ex", "p1", "--", "set", "Interface", "p1", "type=internal")
		})
	}
	hosts := []*host.Host{open(t, "a", side("physnet1:br-ex")), open(t, "b", side("physnet1:br-other"))}
	for destination, named := range map[string]bool{"ff:ff:ff:ff:ff:ff": true,
		"0a:00:00:00:00:09": true} { // the second is flooded
		got := ends(t, hosts, follow.Options{},
			follow.Start{Node: "a", InPort: "p1", Packet: packet(t, strings.ReplaceAll(tcp, "0a:00:00:00:00:02", destination))})
		if len(got) != 2 || strings.Contains(got[1], "whether br-ex of b is on the same wire was not recorded") != named {
			t.Errorf("%s: %q", destination, got)
		}
	}
}

// TestAnswersAreNotFlooded asks for an address over three nodes, of which one answers. The bridges have
// learned from the request where its sender is, and send the answer there alone, as in OVN's tests "DVR
// N-S ARP handling" and "ARP replies for SNAT external ips".
func TestAnswersAreNotFlooded(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	wired := func(more func(s *ovs.Switch)) string {
		return node(t, func(s *ovs.Switch) {
			s.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet1:br-ex", "--", "add-br", "br-ex", "--",
				"add-port", "br-ex", "eth1")
			more(s)
		})
	}
	answers := func(s *ovs.Switch) {
		s.Vsctl("add-br", "br-int")
		for _, p := range [][3]string{{"br-ex", "out", "in"}, {"br-int", "in", "out"}} {
			s.Vsctl("add-port", p[0], p[1], "--", "set", "Interface", p[1], "type=patch", "options:peer="+p[2])
		}
		s.Ofctl("del-flows", "br-int")
		s.Ofctl("add-flow", "br-int", "arp,arp_op=1,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:0a:00:00:00:00:02,load:2->NXM_OF_ARP_OP[],IN_PORT")
	}
	sender := func(s *ovs.Switch) {
		s.Vsctl("add-port", "br-ex", "p1", "--", "set", "Interface", "p1", "type=internal", "external_ids:iface-id=p1")
	}
	hosts := []*host.Host{open(t, "a", wired(sender)), open(t, "b", wired(answers)),
		open(t, "c", wired(func(*ovs.Switch) {}))}
	request := packet(t, "arp,dl_src=0a:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,arp_sha=0a:00:00:00:00:01,arp_tha=00:00:00:00:00:00")
	hop, _, err := follow.New(hosts, follow.Options{}).Packet(t.Context(),
		follow.Start{Node: "a", InPort: "p1", Packet: request})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for at, branch := range hop.Ends() {
		if branch.Kind == follow.Delivered {
			out = append(out, fmt.Sprintf("%s %s %s", branch.Packet.Get("arp_op"), at.Node, branch.Port.Name))
		}
	}
	slices.Sort(out)
	expect.Equal(t, out, []string{"1 a br-ex", "1 a eth1", "1 b br-ex", "1 c br-ex", "2 a p1", "2 b eth1"})
}

// TestBridgesLearnInEachVLAN lets a bridge learn an address at an access port. In that VLAN, a later packet
// to the address comes out there alone; in another one, it is flooded.
func TestBridgesLearnInEachVLAN(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("add-br", "br-ex", "--", "add-port", "br-ex", "eth1")
		for port, tag := range map[string]string{"p1": "10", "p2": "10", "p3": "20", "p4": "20"} {
			s.Vsctl("add-port", "br-ex", port, "tag="+tag, "--", "set", "Interface", port, "type=internal")
		}
	})
	tracer := follow.New([]*host.Host{open(t, "a", path)}, follow.Options{})
	out := func(in, flow string, state *follow.State) (list []string, after *follow.State) {
		hop, after, err := tracer.Packet(t.Context(),
			follow.Start{Node: "a", InPort: in, Packet: packet(t, flow), State: state})
		if err != nil {
			t.Fatal(err)
		}
		for _, branch := range hop.Ends() {
			list = append(list, branch.Port.Name)
		}
		slices.Sort(list)
		return list, after
	}
	_, state := out("p1", strings.ReplaceAll(tcp, "0a:00:00:00:00:02", "ff:ff:ff:ff:ff:ff"), nil)
	answer := strings.NewReplacer("dl_src=0a:00:00:00:00:01", "dl_src=0a:00:00:00:00:02", "dl_dst=0a:00:00:00:00:02",
		"dl_dst=0a:00:00:00:00:01").Replace(tcp)
	for in, want := range map[string][]string{"p2": {"p1"}, "p3": {"br-ex", "eth1", "p4"}} {
		got, _ := out(in, answer, state)
		expect.Equal(t, got, want, "from "+in)
	}
	got, _ := out("eth1", strings.Replace(answer, "tcp,", "tcp,dl_vlan=10,dl_vlan_pcp=0,", 1), state)
	expect.Equal(t, got, []string{"p1"}, "from the trunk")
}

func TestQuestionsThatCanNotBeAsked(t *testing.T) {
	hosts := single(t, nil)
	bad := packet(t, tcp)
	bad.Set("colour", "red")
	for want, start := range map[string]follow.Start{
		`no node "b"`:                                {Node: "b", InPort: "p1"},
		`node a has no port "p9"`:                    {Node: "a", InPort: "p9"},
		`port "p1" of node a is on bridge br-int`:    {Node: "a", InPort: "p1", Bridge: "br-ex"},
		`no node has a port on the physical network`: {Network: "physnet1"},
		`ovs-vswitchd of node a refuses the packet`:  {Node: "a", InPort: "p1", Packet: bad},
	} {
		if _, _, err := follow.New(hosts, follow.Options{}).Packet(t.Context(), start); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := follow.New(hosts, follow.Options{}).Packet(ctx,
		follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPatchPortsInALoopEndThePacket(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd")
	path := node(t, func(s *ovs.Switch) {
		s.Vsctl("add-br", "br0", "--", "add-br", "br1", "--", "add-port", "br0", "p1", "--", "set", "Interface", "p1",
			"type=internal")
		for _, p := range [][3]string{{"br0", "a0", "a1"}, {"br1", "a1", "a0"}, {"br0", "b0", "b1"}, {"br1", "b1", "b0"}} {
			s.Vsctl("add-port", p[0], p[1], "--", "set", "Interface", p[1], "type=patch", "options:peer="+p[2])
		}
		s.Ofctl("del-flows", "br0")
		s.Ofctl("del-flows", "br1")
		s.Ofctl("add-flow", "br0", "actions=output:a0")
		s.Ofctl("add-flow", "br1", "actions=output:b1")
	})
	got := ends(t, []*host.Host{open(t, "a", path)}, follow.Options{},
		follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
	if !leads(got, "dropped a - ovs-vswitchd drops the packet: ") || !strings.Contains(got[0], "translation depth") {
		t.Errorf("%q", got)
	}
}

// TestRecirculationWithoutEndIsBounded has a flow that OVS 3.1 follows for ever. Newer
// versions stop after 4096 passes, and the tracer then does.
func TestRecirculationWithoutEndIsBounded(t *testing.T) {
	hosts := single(t, nil, "tcp,actions=ct(table=0)")
	start := follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)}
	hop, _, err := follow.New(hosts, follow.Options{}).Packet(t.Context(), start)
	if err == nil && leads(endsOf(hop), "dropped a - the datapath drops the packet: it still recirculates after 64 passes on the node, a loop") {
		return
	}
	// Either the time is up, or ovs-vswitchd has used all the memory that it may.
	if !errors.Is(err, host.ErrNoAnswer) || !strings.Contains(err.Error(), "start its replica") {
		t.Fatal(err)
	}
	// The next question is not asked: it takes no time, while one that an ovs-vswitchd does not answer takes ten seconds.
	// One that has ended can't be reached.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, _, err := follow.New(hosts, follow.Options{}).Packet(ctx, start); err == nil ||
		errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "start") {
		t.Errorf("the second question: %v, want that its replica has to be started", err)
	}
}

// TestDatapathDropsWhatGoesInACircle has flows that route a packet on one node until its TTL is
// 1. A real packet with the TTL 5 arrives. One with the TTL 100 does not: ovs-vswitchd 3.1 logs
// "Packet dropped. Max recirculation depth exceeded."
func TestDatapathDropsWhatGoesInACircle(t *testing.T) {
	hosts := single(t, nil, "table=0,priority=200,ip,nw_ttl=1,actions=output:2",
		"table=0,priority=100,ip,actions=dec_ttl,ct(zone=5,table=1)", "table=1,ip,actions=resubmit(,0)")
	for ttl, want := range map[string]string{"5": "delivered a p2",
		"100": "dropped a - the datapath drops the packet: it still recirculates after 64 passes on the node, a loop"} {
		p := packet(t, tcp)
		p.Set("nw_ttl", ttl)
		if got := ends(t, hosts, follow.Options{}, follow.Start{Node: "a", InPort: "p1", Packet: p}); !leads(got, want) {
			t.Errorf("TTL %s: %q", ttl, got)
		}
	}
}

func TestQuestionsAtTheSameTime(t *testing.T) {
	hosts := single(t, nil, "table=0,tcp,actions=ct(commit,zone=5,table=1)", "table=1,ct_state=+new,actions=output:2")
	tracer := follow.New(hosts, follow.Options{})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			hop, _, err := tracer.Packet(t.Context(), follow.Start{Node: "a", InPort: "p1", Packet: packet(t, tcp)})
			if err != nil || !leads(endsOf(hop), "delivered a p2") {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
}
