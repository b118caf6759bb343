package sets

import "fmt"

// hybrid is the plan of the set neutron-hybrid.
func hybrid(p *plan) {
	vm := func(label string, octet int) host {
		return host{label: label, mac: fmt.Sprintf("fa:16:3e:d3:00:%02d", octet), ip: fmt.Sprintf("10.211.0.%d", octet), ip6: fmt.Sprintf("fd00:211::%d", octet)}
	}
	g1, g2, g3, dhcp := vm("g1", 11), vm("g2", 12), vm("g3", 13), vm("dhcp", 2)
	for i, node := range []string{"compute1", "compute2"} {
		p.tell(node+" announces itself on the underlay", host{label: node + ":br-eth0", mac: fmt.Sprintf("52:54:00:28:00:%d", 11+i), ip: fmt.Sprintf("192.0.2.%d", 11+i)}.arp(fmt.Sprintf("192.0.2.%d", 11+i)))
	}
	p.announce(g1, g2, g3, dhcp)
	for _, c := range []passage{
		{"ssh between nodes", toHost(g1.tcp(g3.ip, 22), g3), "g3"},
		{"ssh on one node", toHost(g1.tcp(g2.ip, 22), g2), "g2"},
		{"http from a member of the group", toHost(g3.tcp(g1.ip, 80), g1), "g1"},
		{"DNS", toHost(g2.udp(dhcp.ip, 53), dhcp), "dhcp"},
	} {
		connection := p.connect(c.shows, c.f, c.to)
		p.delivered(c.to, c.shows+": a further packet", connection.forth()).established()
		p.delivered(c.f.from, c.shows+": an answer", connection.back()).established()
	}
	for _, c := range []passage{
		{"ssh between nodes", toHost(g1.tcp(g3.ip, 22), g3), "g3"},
		{"ssh on one node", toHost(g2.tcp(g1.ip, 22), g1), "g1"},
		{"a ping between nodes", toHost(g3.ping(g2.ip), g2), "g2"},
		{"http from a member of the group", toHost(g3.tcp(g2.ip, 80), g2), "g2"},
		{"DNS", toHost(g1.udp(dhcp.ip, 53), dhcp), "dhcp"},
		{"a DHCP request", g1.discover(), "dhcp"},
		{"ssh from a port without firewall", toHost(dhcp.tcp(g1.ip, 22), g1), "g1"},
	} {
		p.delivered(c.to, c.shows, c.f)
	}
	p.answered("g1", "ARP reply", "ARP, which br-tun answers", g1.arp(dhcp.ip))
	p.answered("g1", "ARP reply", "ARP for a VM of the other node", g1.arp(g3.ip))
	p.delivered("g1", "ARP for a VM of the node", g2.arp(g1.ip))
	for _, way := range []struct{ from, to host }{{g1, g3}, {g1, g2}, {g3, g1}, {dhcp, g2}} {
		p.dropped("ACL", fmt.Sprintf("TCP port 443 from %s to %s", way.from.label, way.to.label), toHost(way.from.tcp(way.to.ip, 443), way.to))
		p.dropped("ACL", fmt.Sprintf("UDP from %s to %s", way.from.label, way.to.label), toHost(way.from.udp(way.to.ip, 5353), way.to))
	}
	p.dropped("ACL", "http from a VM that is not in the group", toHost(g2.tcp(g1.ip, 80), g1))
	spoof := toHost(g1.tcp(g3.ip, 22), g3)
	spoof.sip = "10.211.0.99"
	p.dropped("port security", "a foreign source address", spoof)
	spoof = toHost(g1.tcp(g3.ip, 22), g3)
	spoof.src = "fa:16:3e:d3:00:99"
	p.dropped("port security", "a foreign source MAC", spoof)
	server := toHost(g1.udp(g3.ip, 68), g3)
	server.sport = 67
	p.dropped("port security", "a VM as a DHCP server", server)
	unknown := toHost(g1.tcp(g3.ip, 443), g3)
	unknown.flags = "SA"
	p.dropped("ACL", "a SYN|ACK without a connection", unknown)
}
