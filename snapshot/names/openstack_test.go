package names

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

const (
	portA   = "a1f0c2d4-11aa-4e01-8b3c-0d5e6f700001"
	portB   = "a2f0c2d4-22bb-4e02-8b3c-0d5e6f700002"
	portC   = "b3f0c2d4-33cc-4e03-8b3c-0d5e6f700003"
	subport = "c4f0c2d4-44dd-4e04-8b3c-0d5e6f700004"
	sriov   = "d5f0c2d4-55ee-4e05-8b3c-0d5e6f700005"
	server  = "7c3c4f8a-63ca-5da2-bb74-dc6f8fc4553a"
)

// cloud returns the names of an OpenStack deployment that ovn-nbctl wrote: networks blue
// and green with the same addresses, and a provider network with VLAN 120.
func cloud(t *testing.T) *Names {
	t.Helper()
	c := ovs.StartCentral(t)
	c.Northd()
	lsp := func(network, port, name, device, addresses string) []string {
		return []string{"--", "lsp-add", network, port, "--", "lsp-set-addresses", port, addresses, "--", "set",
			"Logical_Switch_Port", port,
			`external_ids:neutron\:port_name=` + name, `external_ids:neutron\:device_id=` + device}
	}
	args := []string{"ls-add", "neutron-blue", "--", "set", "Logical_Switch", "neutron-blue",
		`external_ids:neutron\:network_name=blue`,
		"--", "ls-add", "neutron-green", "--", "set", "Logical_Switch", "neutron-green",
		`external_ids:neutron\:network_name=green`,
		"--", "ls-add", "neutron-ext", "--", "set", "Logical_Switch", "neutron-ext",
		`external_ids:neutron\:network_name=public`,
		"--", "lsp-add", "neutron-ext", "provnet", "", "120", "--", "lsp-set-type", "provnet", "localnet", "--",
		"lsp-set-addresses", "provnet", "unknown",
		"--", "lsp-set-options", "provnet", "network_name=physnet1"}
	args = append(args, lsp("neutron-blue", portA, "web", server, "fa:16:3e:10:00:05 192.168.10.5 fd00:10::5")...)
	args = append(args, lsp("neutron-blue", portB, "db", server, "fa:16:3e:10:00:06 192.168.10.6 fd00:10::6")...)
	args = append(args, lsp("neutron-green", portC, "web", "3d1e", "fa:16:3e:20:00:05 192.168.10.5")...)
	args = append(args, lsp("neutron-blue", sriov, "fast", "x", "fa:16:3e:10:00:09 192.168.10.9")...)
	args = append(args, lsp("neutron-ext", "ext-vm", "outer", "y", "fa:16:3e:30:00:05 172.24.4.40")...)
	args = append(args, "--", "lsp-set-type", sriov, "external",
		"--", "lsp-add", "neutron-blue", subport, portB, "55", "--", "lsp-set-addresses", subport,
		"fa:16:3e:10:00:55 192.168.10.55",
		"--", "lsp-add", "neutron-blue", "meta", "--", "lsp-set-type", "meta", "localport", "--", "lsp-set-addresses", "meta",
		"fa:16:3e:10:00:02 192.168.10.2",
		"--", "lr-add", "r1", "--", "lrp-add", "r1", "lrp-blue", "fa:16:3e:aa:00:01", "192.168.10.1/24", "fd00:10::1/64",
		"--", "lsp-add", "neutron-blue", "lsp-blue", "--", "lsp-set-type", "lsp-blue", "router", "--", "lsp-set-addresses",
		"lsp-blue", "router",
		"--", "lsp-set-options", "lsp-blue", "router-port=lrp-blue",
		"--", "lrp-add", "r1", "lrp-ext", "fa:16:3e:aa:00:10", "172.24.4.10/24", "--", "lsp-add", "neutron-ext", "lsp-ext",
		"--", "lsp-set-type", "lsp-ext", "router",
		"--", "lsp-set-addresses", "lsp-ext", "router", "--", "lsp-set-options", "lsp-ext", "router-port=lrp-ext",
		"--", "lr-nat-add", "r1", "dnat_and_snat", "172.24.4.21", "192.168.10.5", portA, "fa:16:3e:ff:00:21", "--",
		"lr-nat-add", "r1", "dnat_and_snat", "172.24.4.22", "192.168.10.6",
		"--", "lr-route-add", "r1", "0.0.0.0/0", "172.24.4.1",
		"--", "lr-nat-add", "r1", "snat", "172.24.4.10", "192.168.10.0/24",
		"--", "lb-add", "lb1", "192.168.10.100:80", "192.168.10.5:80,192.168.10.6:80", "--", "lr-lb-add", "r1", "lb1", "--",
		"ls-lb-add", "neutron-blue", "lb1",
		"--", "lb-add", "lb2", "10.0.0.53:53", "192.168.10.5:53", "tcp", "--", "lb-add", "lb3", "10.0.0.53:53",
		"192.168.10.5:53", "udp",
		"--", "create", "DNS", `records={"vm-17.example"="192.168.10.6 fd00:10::6"}`)
	c.Nbctl(append([]string{"--wait=sb"}, args...)...)
	c.Sbctl("chassis-add", "system-1", "geneve", "192.168.24.11", "--", "set", "Chassis", "system-1",
		"hostname=compute1.example",
		"--", "chassis-add", "system-2", "geneve", "192.168.24.12", "--", "set", "Chassis", "system-2",
		"hostname=compute2.example",
		"--", "lsp-bind", portA, "system-1", "--", "lsp-bind", portB, "system-1", "--", "lsp-bind", subport, "system-1", "--",
		"lsp-bind", portC, "system-2")
	c.Sbctl("create", "MAC_Binding", "logical_port=lrp-ext", "ip=172.24.4.1", `mac="02:00:00:00:00:fe"`,
		"datapath="+strings.TrimSpace(
			c.Sbctl("--bare", "--columns=_uuid", "find", "Datapath_Binding", "external_ids:name=r1")))
	c.Stop()
	conf := ovndb.Create(t, ovs.Schema)
	conf.Add(ovndb.Rows{"Open_vSwitch": {"00000000-0000-4000-8000-000000000001": ovndb.Row{"external_ids": ovndb.Map("system-id", "system-1", "ovn-bridge-mappings", "other:br-ex", "ovn-bridge-mappings-system-1", "physnet1:br-ex")}}})
	return load(t, &snapshot.Deployment{NB: open(t, c.NB), SB: open(t, c.SB),
		Nodes: []snapshot.Member{{Name: "compute1", OVS: open(t, conf.Close())}}})
}

func TestNamesOfOpenStack(t *testing.T) {
	n := cloud(t)
	for name, port := range map[string]string{
		portA: portA, "a1f0c2d4": portA, "a1f0": portA, "A1F0C2D4-11AA": portA, "db": portB, "vm-17": portB,
		"vm-17.example": portB, "3d1e": portC,
		"fa:16:3e:10:00:06": portB, "192.168.10.6": portB, "fd00:10::5": portA, "172.24.4.21": "", "192.168.10.100:80": "",
		"meta": "meta",
	} {
		if e, err := n.Find(name, Filter{}); err != nil || e.LogicalPort != port {
			t.Errorf("%s: %v %v", name, e, err)
		}
	}
	if a, b := find(t, n, portA), find(t, n, portC); a.Node != "compute1" || a.Chassis != "compute1.example" ||
		b.Node != "" || b.Chassis != "compute2.example" {
		t.Errorf("on %+v, %+v", a, b)
	}
	for name, candidates := range map[string]int{"web": 2, "192.168.10.5": 2, server: 2, "7c3c4f8a": 2, "10.0.0.53": 2} {
		_, err := n.Find(name, Filter{})
		ambiguous, ok := errors.AsType[*AmbiguousError](err)
		if !ok || len(ambiguous.Candidates) != candidates || strings.Count(err.Error(), "\n") != candidates {
			t.Errorf("%s: %v", name, err)
		}
	}
	for filter, port := range map[Filter]string{{Network: "green"}: portC, {Network: "blue"}: portA,
		{Network: "neutron-blue"}: portA, {Network: "gree"}: portC} {
		if e, err := n.Find("web", filter); err != nil || e.LogicalPort != port {
			t.Errorf("web in %v: %v %v", filter, e, err)
		}
	}
	if e, err := n.Find("10.0.0.53", Filter{Protocol: "udp"}); err != nil || e.Balancer != "lb3" {
		t.Errorf("%v %v", e, err)
	}
	if _, err := n.Find("web", Filter{Network: "red"}); !errors.As(err, new(*UnknownError)) {
		t.Errorf("in a network that is not there: %v", err)
	}
}

// TestFirstPackets checks the first packets of a deployment: to neighbours, routers, VIPs,
// outside, from outside, and those that can't be sent.
func TestFirstPackets(t *testing.T) {
	n := cloud(t)
	echo := uint8(0)
	for what, c := range map[string]struct {
		from, to string
		q        Question
		port     string
		flow     string
		why      error
		assumed  string
	}{
		"neighbour": {from: portA, to: "db", port: portA,
			flow: "icmp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,nw_src=192.168.10.5,nw_dst=192.168.10.6,nw_ttl=64,icmp_type=8,icmp_code=0"},
		"neighbour, IPv6": {from: portA, to: "db", q: Question{Family: 6, Protocol: "udp", DstPort: 53, SrcPort: 9, TTL: 3},
			port: portA, flow: "udp6,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,nw_ttl=3,udp_src=9,udp_dst=53"},
		"reply, IPv6": {from: portA, to: "db", q: Question{Family: 6, Protocol: "icmp6", ICMPType: &echo}, port: portA,
			flow: "icmp6,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,nw_ttl=64,icmpv6_type=0,icmpv6_code=0"},
		"typed IPv6": {from: portA, to: "fd00:10::6", port: portA,
			flow: "icmp6,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,nw_ttl=64,icmpv6_type=128,icmpv6_code=0"},
		"typed IPv6 source": {from: "fd00:10::5", to: "db", q: Question{DstPort: 80}, port: portA,
			flow: "tcp6,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,nw_ttl=64,tcp_src=40000,tcp_dst=80,tcp_flags=syn"},
		"icmp6": {from: portA, to: "db", q: Question{Protocol: "icmp6"}, port: portA,
			flow: "icmp6,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:10:00:06,ipv6_src=fd00:10::5,ipv6_dst=fd00:10::6,nw_ttl=64,icmpv6_type=128,icmpv6_code=0"},
		"icmp6 over IPv4": {from: portA, to: "192.168.10.6", q: Question{Protocol: "icmp6"}, why: ErrFamily},
		"typed, other":    {from: "fd00:10::5", to: "192.168.10.6", why: ErrFamily},
		"outside": {from: portA, to: "external/8.8.8.8", q: Question{DstPort: 443}, port: portA,
			flow: "tcp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:aa:00:01,nw_src=192.168.10.5,nw_dst=8.8.8.8,nw_ttl=64,tcp_src=40000,tcp_dst=443,tcp_flags=syn"},
		"VIP in the subnet": {from: portA, to: "192.168.10.100:80", port: portA,
			flow: "tcp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:aa:00:01,nw_src=192.168.10.5,nw_dst=192.168.10.100,nw_ttl=64,tcp_src=40000,tcp_dst=80,tcp_flags=syn"},
		"router": {from: portA, to: "lrp-ext", port: portA,
			flow: "icmp,dl_src=fa:16:3e:10:00:05,dl_dst=fa:16:3e:aa:00:01,nw_src=192.168.10.5,nw_dst=172.24.4.10,nw_ttl=64,icmp_type=8,icmp_code=0"},
		"no such neighbour": {from: portA, to: "external/192.168.10.77", port: portA,
			flow: "arp,dl_src=fa:16:3e:10:00:05,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=192.168.10.5,arp_tpa=192.168.10.77,arp_sha=fa:16:3e:10:00:05,arp_tha=00:00:00:00:00:00"},
		"no such IPv6 neighbour": {from: portA, to: "external/fd00:10::77", port: portA,
			flow: "icmp6,dl_src=fa:16:3e:10:00:05,dl_dst=33:33:ff:00:00:77,ipv6_src=fd00:10::5,ipv6_dst=ff02::1:ff00:77,nw_ttl=255,icmpv6_type=135,icmpv6_code=0,nd_target=fd00:10::77,nd_sll=fa:16:3e:10:00:05"},
		"subport": {from: subport, to: portA, port: portB,
			flow: "dl_vlan=55,dl_vlan_pcp=0,icmp,dl_src=fa:16:3e:10:00:55,dl_dst=fa:16:3e:10:00:05,nw_src=192.168.10.55,nw_dst=192.168.10.5,nw_ttl=64,icmp_type=8,icmp_code=0"},
		"multicast": {from: portA, to: "external/239.129.2.3", port: portA,
			flow: "icmp,dl_src=fa:16:3e:10:00:05,dl_dst=01:00:5e:01:02:03,nw_src=192.168.10.5,nw_dst=239.129.2.3,nw_ttl=64,icmp_type=8,icmp_code=0"},
		"to floating ip": {from: "external/8.8.8.8", to: "172.24.4.21",
			flow: "dl_vlan=120,dl_vlan_pcp=0,icmp,dl_src=02:00:00:00:00:fe,dl_dst=fa:16:3e:ff:00:21,nw_src=8.8.8.8,nw_dst=172.24.4.21,nw_ttl=64,icmp_type=8,icmp_code=0", assumed: "physical router 172.24.4.1"},
		"to a port with one": {from: "external/172.24.4.1", to: "db", q: Question{DstPort: 22},
			flow: "dl_vlan=120,dl_vlan_pcp=0,tcp,dl_src=02:00:00:00:00:fe,dl_dst=fa:16:3e:aa:00:10,nw_src=172.24.4.1,nw_dst=172.24.4.22,nw_ttl=64,tcp_src=40000,tcp_dst=22,tcp_flags=syn", assumed: "from outside, db has the address 172.24.4.22"},
		"to a provider network": {from: "external/172.24.4.99", to: "outer",
			flow: "dl_vlan=120,dl_vlan_pcp=0,icmp,dl_src=02:00:00:00:00:01,dl_dst=fa:16:3e:30:00:05,nw_src=172.24.4.99,nw_dst=172.24.4.40,nw_ttl=64,icmp_type=8,icmp_code=0"},
		"not captured":     {from: portC, to: "external/8.8.8.8", why: ErrNoNode},
		"not bound":        {from: "outer", to: portA, why: ErrNotBound},
		"a service sends":  {from: "192.168.10.100:80", to: portA, why: ErrNotSender},
		"families":         {from: portA, to: "db", q: Question{Family: 4}, port: portA},
		"no family":        {from: subport, to: "external/2001:db8::1", why: ErrFamily},
		"not from outside": {from: "external/8.8.8.8", to: portC, why: ErrNoEntry},
		"outside of OVS":   {from: sriov, to: portA, why: ErrNoNode},
	} {
		c.q.From, c.q.To = find(t, n, c.from), find(t, n, c.to)
		p, err := n.First(c.q)
		if !errors.Is(err, c.why) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err != nil {
			continue
		}
		if p.Port != c.port || c.flow != "" && p.Flow != c.flow || !slices.Equal(p.Nodes, []string{"compute1"}) {
			t.Errorf("%s: %+v\nwant %s from %s", what, p, c.flow, c.port)
		}
		if c.port == "" && p.PhysicalNetwork != "physnet1" || !strings.Contains(strings.Join(p.Assumed, "\n"), c.assumed) {
			t.Errorf("%s: %+v", what, p)
		}
		if unresolved := strings.HasPrefix(what, "no such"); unresolved != p.Unresolved.IsValid() {
			t.Errorf("%s: unresolved %v", what, p.Unresolved)
		}
	}
}

// TestPacketsAreReadByTheSwitch traces first packets on a real switch: ofproto/trace reads
// each of them.
func TestPacketsAreReadByTheSwitch(t *testing.T) {
	n := cloud(t)
	s := ovs.Start(t)
	s.Vsctl("add-br", "br0")
	for _, to := range []string{"db", "external/8.8.8.8", "external/192.168.10.77", "external/fd00:10::77",
		"external/2001:db8::1"} {
		for _, q := range []Question{{}, {Protocol: "tcp"}, {Protocol: "udp", DstPort: 53}, {Protocol: "sctp", DstPort: 3868},
			{Protocol: "icmp"}} {
			q.From, q.To = find(t, n, portA), find(t, n, to)
			p, err := n.First(q)
			if err != nil {
				t.Fatal(err)
			}
			if out := s.Appctl("ofproto/trace", "br0", "in_port=LOCAL,"+p.Flow); !strings.Contains(out, "Datapath actions:") {
				t.Errorf("%s: %s", p.Flow, out)
			}
		}
	}
}

func TestHoldersOfPortsAndMACAddresses(t *testing.T) {
	n := cloud(t)
	if e, ok := n.Holder(portB, 55); !ok || e.LogicalPort != subport {
		t.Errorf("VLAN 55 of the trunk: %v %v", e, ok)
	}
	for _, tag := range []int{0, 56} { // a tag that no port of the trunk has
		if e, ok := n.Holder(portB, tag); !ok || e.LogicalPort != portB {
			t.Errorf("VLAN %d of the trunk: %v %v", tag, e, ok)
		}
	}
	if e, ok := n.Holder("", 0); ok {
		t.Errorf("no port: %v", e)
	}
	for mac, node := range map[string]string{"fa:16:3e:10:00:05": "compute1", "fa:16:3e:20:00:05": "",
		"fa:16:3e:ff:00:21": "compute1"} {
		if list := n.WithMAC(mac); len(list) != 1 || list[0].Node != node || list[0].Chassis == "" {
			t.Errorf("%s: %+v", mac, list)
		}
	}
	expect.Equal(t, n.WithMAC("02:00:00:00:00:fe"), nil, "the physical router")
}
