package sets

import "fmt"

// agents holds the end points of the set neutron-ovs.
type agents struct {
	vm1, vm2, vm3, vm4, vm5, vm6 host
	dhcp, qr, qg                 host
	out, outVLAN                 host
}

func newAgents() agents {
	vm := func(label, mac, network string, octet int) host {
		h := host{label: label, mac: mac, ip: fmt.Sprintf("10.%s.0.%d", network, octet), ip6: fmt.Sprintf("fd00:%s::%d", network, octet)}
		h.gw = "fa:16:3e:65:00:01"
		return h
	}
	a := agents{
		vm1:     vm("vm1", "fa:16:3e:65:00:11", "101", 11),
		vm2:     vm("vm2", "fa:16:3e:65:00:12", "101", 12),
		vm3:     vm("vm3", "fa:16:3e:65:00:13", "101", 13),
		vm6:     vm("vm6", "fa:16:3e:65:00:16", "101", 16),
		vm4:     vm("vm4", "fa:16:3e:78:00:11", "120", 11),
		vm5:     vm("vm5", "fa:16:3e:78:00:12", "120", 12),
		dhcp:    vm("dhcp", "fa:16:3e:65:00:02", "101", 2),
		qr:      vm("qr", "fa:16:3e:65:00:01", "101", 1),
		qg:      host{label: "qg", mac: "fa:16:3e:aa:00:05", ip: "203.0.113.5", ip6: "2001:db8:113::5", gw: "02:00:00:00:71:01"},
		out:     host{label: "ext0", mac: "02:00:00:00:71:01", ip: "203.0.113.1", ip6: "2001:db8:113::1", gw: "fa:16:3e:aa:00:05"},
		outVLAN: host{label: "ext0", mac: "02:00:00:00:78:01", ip: "10.120.0.1", ip6: "fd00:120::1", vlan: 120},
	}
	for i, h := range []*host{&a.vm1, &a.vm2, &a.vm3} {
		h.ip6 = fmt.Sprintf("fd00:101::%d", 11+i)
	}
	return a
}

// toHost returns a frame to a neighbour.
func toHost(f frame, h host) frame { return to(f, h.mac) }

// firewall names the flow of br-int that decides: its table, and what it is about.
func (s *step) firewall(name string) *step { return s.by("flow", name) }

func neutron(p *plan) {
	a := newAgents()
	a.meet(p)
	a.connections(p)
	a.allowed(p)
	a.refused(p)
	a.learned(p)
	a.outside(p)
	a.invalid(p)
}

func (a agents) meet(p *plan) {
	for i, node := range []string{"compute1", "compute2", "network"} {
		p.tell(node+" announces itself on the underlay", host{label: node + ":br-eth0", mac: fmt.Sprintf("52:54:00:28:00:%d", 11+i), ip: fmt.Sprintf("192.0.2.%d", 11+i)}.arp(fmt.Sprintf("192.0.2.%d", 11+i)))
	}
	p.announce(a.vm1, a.vm2, a.vm3, a.vm4, a.vm5, a.vm6, a.dhcp, a.qr, a.qg, a.out, a.outVLAN)
}

func (a agents) connections(p *plan) {
	ssh := p.both("ssh between nodes", p.connect("ssh between nodes", toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2), "vm2"), "vm1", "vm2")
	p.both("ssh on one node", p.connect("ssh on one node", toHost(a.vm1.tcp(a.vm3.ip, 22), a.vm3), "vm3"), "vm1", "vm3")
	p.both("http from a member of the remote group", p.connect("http from a member of the remote group", toHost(a.vm2.tcp(a.vm1.ip, 80), a.vm1), "vm1"), "vm2", "vm1")
	p.both("ssh on the provider VLAN", p.connect("ssh on the provider VLAN", toHost(a.vm4.tcp(a.vm5.ip, 22), a.vm5), "vm5"), "vm4", "vm5")
	p.both("ssh from a host of the provider VLAN", p.connect("ssh from a host of the provider VLAN", toHost(a.outVLAN.tcp(a.vm4.ip, 22), a.vm4), "vm4"), "ext0", "vm4")
	p.both("through the router", p.connect("through the router", a.vm1.tcp(anywhere, 443), "qr"), "vm1", "qr")
	p.both("from the router", p.connect("from the router", toHost(a.qr.tcp(a.vm2.ip, 22), a.vm2), "vm2"), "qr", "vm2")
	p.both("IPv6 ssh between nodes", p.connect("IPv6 ssh between nodes", toHost(a.vm1.tcp(a.vm2.ip6, 22), a.vm2), "vm2"), "vm1", "vm2")
	lost := p.connect("a port whose further packets no flow allows", toHost(a.vm1.tcp(a.vm2.ip, 8000), a.vm2), "vm2")
	lost.acknowledgement.to = nil
	ping := p.connect("a ping between nodes", toHost(a.vm2.ping(a.vm1.ip), a.vm1), "vm1")
	dns := p.connect("DNS to the DHCP server", toHost(a.vm3.udp(a.dhcp.ip, 53), a.dhcp), "dhcp")
	ping6 := p.connect("an IPv6 ping between nodes", toHost(a.vm2.ping(a.vm1.ip6), a.vm1), "vm1")
	p.delivered("vm1", "a ping between nodes: a further request", ping.forth()).established()
	p.delivered("vm2", "a ping between nodes: a further answer", ping.back()).established()
	p.delivered("dhcp", "DNS to the DHCP server: a further packet", dns.forth()).established()
	p.delivered("vm3", "DNS to the DHCP server: an answer", dns.back()).established()
	p.delivered("vm1", "an IPv6 ping between nodes: a further request", ping6.forth()).established()
	p.delivered("vm2", "an IPv6 ping between nodes: a further answer", ping6.back()).established()
	p.delivered("vm1", "a VM reports an error about a connection", ssh.failure(3, 3, "")).established()
	p.dropped("ACL", "a connection that was marked as no longer allowed", lost.forth()).established().firewall("ct_mark=0x1")
	p.dropped("ACL", "an answer of a connection that was marked", lost.back()).established().firewall("ct_mark=0x1")
}

func (a agents) allowed(p *plan) {
	p.delivered("vm2", "ssh between nodes", toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2)).firewall("tcp,tp_dst=22")
	p.delivered("vm1", "ssh back between nodes", toHost(a.vm2.tcp(a.vm1.ip, 22), a.vm1)).firewall("tcp,tp_dst=22")
	p.delivered("vm3", "ssh on one node", toHost(a.vm1.tcp(a.vm3.ip, 22), a.vm3)).firewall("tcp,tp_dst=22")
	p.delivered("vm2", "a ping between nodes", toHost(a.vm1.ping(a.vm2.ip), a.vm2)).firewall("icmp")
	p.delivered("vm3", "a ping on one node", toHost(a.vm1.ping(a.vm3.ip), a.vm3)).firewall("icmp")
	p.delivered("vm2", "an IPv6 ping between nodes", toHost(a.vm1.ping(a.vm2.ip6), a.vm2)).firewall("icmp6")
	p.delivered("vm2", "IPv6 ssh between nodes", toHost(a.vm1.tcp(a.vm2.ip6, 22), a.vm2)).firewall("tcp6,tp_dst=22")
	p.delivered("vm2", "the first port of a range", toHost(a.vm1.tcp(a.vm2.ip, 8000), a.vm2)).firewall("tcp,tp_dst=0x1f40/0xffc0")
	p.delivered("vm2", "the last port of a range", toHost(a.vm1.tcp(a.vm2.ip, 8063), a.vm2)).firewall("tcp,tp_dst=0x1f40/0xffc0")
	p.delivered("vm1", "http from a member of the remote group", toHost(a.vm2.tcp(a.vm1.ip, 80), a.vm1)).firewall("conj_id=17")
	p.delivered("vm1", "http from a member without firewall", toHost(a.vm6.tcp(a.vm1.ip, 80), a.vm1)).firewall("conj_id=17")
	p.delivered("vm5", "a ping on the provider VLAN", toHost(a.vm4.ping(a.vm5.ip), a.vm5)).firewall("icmp")
	p.delivered("vm5", "ssh on the provider VLAN", toHost(a.vm4.tcp(a.vm5.ip, 22), a.vm5)).firewall("tcp,tp_dst=22")
	p.delivered("vm6", "to a VM without firewall", toHost(a.vm1.tcp(a.vm6.ip, 9999), a.vm6))
	p.delivered("vm6", "to a VM without firewall on one node", toHost(a.vm2.udp(a.vm6.ip, 9999), a.vm6))
	p.delivered("vm2", "from a VM without firewall to one of its node: no flow of a firewall matches", toHost(a.vm6.tcp(a.vm2.ip, 21), a.vm2))
	p.delivered("vm6", "a foreign source address where no firewall is", toHost(a.dhcp.udp(a.vm6.ip, 68), a.vm6))
	p.delivered("dhcp", "DNS to the DHCP server", toHost(a.vm1.udp(a.dhcp.ip, 53), a.dhcp))
	p.delivered("vm2", "a ping from the router", toHost(a.qr.ping(a.vm2.ip), a.vm2)).firewall("icmp")
	p.delivered("dhcp", "a DHCP request", a.vm1.discover())
}

func (a agents) refused(p *plan) {
	ways := []struct {
		from host
		to   host
	}{{a.vm1, a.vm2}, {a.vm1, a.vm3}, {a.vm4, a.vm5}, {a.qr, a.vm2}, {a.outVLAN, a.vm4}, {a.vm6, a.vm1}}
	for _, way := range ways {
		for _, port := range []uint16{21, 443, 8064} {
			p.dropped("ACL", fmt.Sprintf("TCP port %d from %s to %s", port, way.from.label, way.to.label), toHost(way.from.tcp(way.to.ip, port), way.to)).firewall("table=82,priority=40,ct_state=-est")
		}
		p.dropped("ACL", fmt.Sprintf("UDP from %s to %s", way.from.label, way.to.label), toHost(way.from.udp(way.to.ip, 5353), way.to)).firewall("table=82,priority=40,ct_state=-est")
	}
	p.dropped("ACL", "http from a VM that is not in the remote group", toHost(a.vm3.tcp(a.vm1.ip, 80), a.vm1)).firewall("table=82,priority=40,ct_state=-est")
	p.dropped("ACL", "another port from a member of the remote group", toHost(a.vm2.tcp(a.vm1.ip, 81), a.vm1)).firewall("table=82,priority=40,ct_state=-est")
	p.dropped("ACL", "IPv6 http", toHost(a.vm1.tcp(a.vm2.ip6, 80), a.vm2))
	p.dropped("ACL", "SMTP to a VM that is no longer new", toHost(a.vm1.sctp(a.vm2.ip, 3868), a.vm2))
	spoof := toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2)
	spoof.sip = "10.101.0.99"
	p.dropped("port security", "a foreign source address", spoof)
	spoof = toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2)
	spoof.src = "fa:16:3e:65:00:99"
	p.dropped("port security", "a foreign source MAC", spoof)
	spoof = toHost(a.vm1.ping(a.vm2.ip6), a.vm2)
	spoof.sip = "fd00:101::99"
	p.dropped("port security", "a foreign IPv6 source address", spoof)
	p.dropped("port security", "ARP with a foreign sender address", a.vm1.arpAs("10.101.0.99", a.vm2.ip))
	server := toHost(a.vm1.udp(a.vm2.ip, 68), a.vm2)
	server.sport = 67
	p.dropped("port security", "a VM as a DHCP server", server)
	large := toHost(a.vm1.ping(a.vm2.ip), a.vm2)
	large.size = 1460
	p.dropped("MTU", "larger than a tunnel takes", large)
	large = toHost(a.vm1.ping(a.vm3.ip), a.vm3)
	large.size = 1450
	p.dropped("MTU", "larger than the interface of a VM takes", large)
	foreign := a.outVLAN.ping("10.121.0.11", a.vm4.mac)
	foreign.vlan = 121
	p.delivered("compute1:br-ex", "a VLAN that no network has is flooded, and not to br-int", foreign)
}

// learned sends what the tunnel bridge answers, learns and floods.
func (a agents) learned(p *plan) {
	p.answered("vm1", "ARP reply", "ARP for a VM of another node, which br-tun answers", a.vm1.arp(a.vm2.ip))
	p.answered("vm2", "ARP reply", "ARP for a VM of the first node", a.vm2.arp(a.vm3.ip))
	p.delivered("qr", "ARP for the router is flooded", a.vm1.arp(a.qr.ip))
	p.delivered("vm6", "ARP for a VM that br-tun does not know", a.vm1.arp(a.vm6.ip))
	p.delivered("dhcp", "an address that br-tun learned", toHost(a.vm2.ping(a.dhcp.ip), a.dhcp))
	p.delivered("qr", "the router's address, which br-tun learned", a.vm2.ping(anywhere))
	p.delivered("vm6", "a MAC that no bridge knows is flooded", toHost(a.vm1.udp("10.101.0.200", 9), host{mac: "fa:16:3e:65:00:c8"}))
	p.delivered("vm2", "ARP on the node of the answer", a.vm6.arp(a.vm2.ip))
}

func (a agents) outside(p *plan) {
	p.delivered("ext0", "from the router to the outside", a.qg.tcp(anywhere, 443))
	p.delivered("ext0", "a ping from the router to the outside", a.qg.ping(a.out.ip))
	p.delivered("qg", "a ping from outside to the router", a.out.ping(a.qg.ip))
	p.delivered("qg", "TCP from outside to the router", a.out.tcp(a.qg.ip, 80))
	p.delivered("qg", "ARP from outside for the router", a.out.arp(a.qg.ip))
	p.delivered("qg", "IPv6 from outside to the router", a.out.tcp(a.qg.ip6, 80))
	p.delivered("ext0", "from a VM to a host of the provider VLAN", toHost(a.vm4.tcp(a.outVLAN.ip, 80), a.outVLAN))
	p.delivered("vm5", "a ping from a host of the provider VLAN", toHost(a.outVLAN.ping(a.vm5.ip), a.vm5)).firewall("icmp")
	p.delivered("vm4", "ARP on the provider VLAN", a.outVLAN.arp(a.vm4.ip))
	p.delivered("network:br-ex", "a MAC that br-ex has not learned is flooded", a.out.udp("203.0.113.200", 9, "02:00:00:00:71:c8"))
	p.delivered("qr", "from a VM through the router", a.vm3.tcp(anywhere, 443))
}

func (a agents) invalid(p *plan) {
	with := func(f frame, flags string) frame {
		f.flags = flags
		return f
	}
	p.dropped("ACL", "a SYN|ACK without a connection is invalid", with(toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2), "SA")).firewall("ct_state=+inv+trk")
	p.delivered("vm2", "an ACK without a connection is new", with(toHost(a.vm1.tcp(a.vm2.ip, 22), a.vm2), "A")).firewall("tcp,tp_dst=22")
	p.dropped("ACL", "an ACK without a connection to a closed port", with(toHost(a.vm1.tcp(a.vm2.ip, 23), a.vm2), "A"))
	reply := toHost(a.vm1.ping(a.vm2.ip), a.vm2)
	reply.icmp[0] = 0
	p.dropped("ACL", "an echo reply without a request is invalid", reply).firewall("ct_state=+inv+trk")
	p.dropped("ACL", "a SYN|ACK from the router without a connection", with(toHost(a.qr.tcp(a.vm2.ip, 40000), a.vm2), "SA")).firewall("ct_state=+inv+trk")
	first := p.delivered("vm6", "a packet that opens the way for its answer", asked(toHost(a.vm1.udp(a.vm6.ip, 9000), a.vm6), 45001))
	p.delivered("vm1", "its answer", asked(toHost(a.vm6.udp(a.vm1.ip, 45001), a.vm1), 9000)).afterwards(first)
	p.dropped("ACL", "an answer without a question", asked(toHost(a.vm6.udp(a.vm1.ip, 45002), a.vm1), 9000))
}
