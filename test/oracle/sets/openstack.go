package sets

import (
	"crypto/md5"
	"fmt"
)

// madeUUID returns the UUID that the lab makes of a name.
func madeUUID(name string) string {
	sum := fmt.Sprintf("%x", md5.Sum([]byte(name)))
	return sum[:8] + "-" + sum[8:12] + "-4" + sum[13:16] + "-8" + sum[17:20] + "-" + sum[20:]
}

// cloud holds the end points of the set openstack.
type cloud struct {
	vm1, vm2, vm3, vm4, vm5, vm6, vm7, vm8, vm9, vm10 host
	out, out9                                         host // the provider's router, and a host beside it
	out6                                              host // the provider's router for IPv6
	outVLAN                                           host // a host on the provider's VLAN
}

func newCloud() cloud {
	vm := func(name, network, octet string) host {
		nets := map[string][4]string{
			"blue":  {"fa:16:3e:10:00:0", "192.168.10.", "fd00:10::", "fa:16:3e:aa:00:01"},
			"green": {"fa:16:3e:20:00:0", "192.168.20.", "fd00:20::", "fa:16:3e:aa:00:02"},
			"red":   {"fa:16:3e:30:00:0", "192.168.30.", "fd00:30::", "fa:16:3e:bb:00:01"},
			"grey":  {"fa:16:3e:40:00:0", "192.168.40.", "fd00:40::", "fa:16:3e:bb:00:02"},
			"vlan":  {"fa:16:3e:78:00:0", "10.120.0.", "fd00:120::", "fa:16:3e:aa:00:03"},
		}
		n := nets[network]
		return host{label: name, mac: n[0] + octet, ip: n[1] + octet, ip6: n[2] + octet, gw: n[3]}
	}
	return cloud{
		vm1: vm("vm1", "blue", "5"), vm2: vm("vm2", "blue", "6"), vm3: vm("vm3", "blue", "7"), vm8: vm("vm8", "blue", "8"),
		vm4: vm("vm4", "green", "5"), vm5: vm("vm5", "green", "6"),
		vm6: vm("vm6", "vlan", "5"), vm7: vm("vm7", "vlan", "6"),
		vm9: vm("vm9", "red", "5"), vm10: vm("vm10", "grey", "6"),
		out:     host{label: "ext0", mac: "02:00:00:00:00:fe", ip: "172.24.4.1", ip6: "2001:db8:4::1", gw: "fa:16:3e:aa:00:10"},
		out6:    host{label: "ext0", mac: "02:00:00:00:00:f6", ip6: "2001:db8:4::1", gw: "fa:16:3e:aa:00:10"},
		out9:    host{label: "ext0", mac: "02:00:00:00:00:09", ip: "172.24.4.9", ip6: "2001:db8:4::9", gw: "fa:16:3e:aa:00:10"},
		outVLAN: host{label: "ext0", mac: "02:00:00:00:78:01", ip: "10.120.0.99", ip6: "fd00:120::99", gw: "fa:16:3e:aa:00:03", vlan: 120},
	}
}

// Rules of security groups have the UUID as their name; what no rule allows, the drop of
// the group neutron_pg_drop decides.
const groupDrop = "neutron_pg_drop"

func (s *step) group(rule string) *step { return s.by("acl", madeUUID("rule-"+rule)) }

const (
	fipNear, fipFar = "fa:16:3e:ff:00:21", "fa:16:3e:ff:00:25" // of vm1 on compute1 and vm5 on compute2
	anywhere        = "198.51.100.9"
	anywhere6       = "2001:db8:77::9"
)

func openstack(p *plan) {
	c := newCloud()
	c.meet(p)
	c.connections(p)
	c.switched(p)
	c.closed(p)
	c.resolved(p)
	c.routed(p)
	c.outward(p)
	c.inward(p)
	c.provider(p)
	c.sized(p)
	c.balanced(p)
	c.invalid(p)
	c.talks(p)
}

// meet makes switches and routers know the hosts that they would know after a while.
func (c cloud) meet(p *plan) {
	for i, node := range []string{"compute1", "compute2", "gateway"} {
		under := host{label: node + ":br-eth0", mac: fmt.Sprintf("52:54:00:18:00:%d", 11+i), ip: fmt.Sprintf("192.168.24.%d", 11+i)}
		p.announce(under)
	}
	p.announce(c.outVLAN)
	p.tell("the provider's router asks for the gateway", c.out.arp("172.24.4.10"), "ext0")
	p.tell("a host outside asks for the gateway", c.out9.arp("172.24.4.10"), "ext0")
	p.tell("a host of the VLAN asks for the gateway", c.outVLAN.arp("10.120.0.1"), "ext0")
	p.tell("the provider's router asks for the gateway's IPv6 address", c.out6.neighbour("2001:db8:4::10"), "ext0")
	p.tell("the provider's router advertises its IPv6 address", c.out6.advertise("2001:db8:4::10", c.out.gw))
	for fip, mac := range map[string]string{"172.24.4.21": fipNear, "172.24.4.25": fipFar} {
		p.tell("the provider's router asks for a floating IP with the MAC "+mac, c.out.arp(fip), "ext0")
	}
	p.tell("vm6 asks for its gateway", c.vm6.arp("10.120.0.1"), "vm6")
	p.tell("vm7 asks for its gateway", c.vm7.arp("10.120.0.1"), "vm7").knowing(c.out.mac, c.out6.mac, c.out9.mac, c.outVLAN.mac)
}

// connections opens what the established packets belong to. Those that conntrack forgets
// first come last.
func (c cloud) connections(p *plan) {
	collide := func(h host) frame {
		f := h.tcp("172.24.4.9", 443)
		f.sport = 31000
		return f
	}
	// (Not port 80: vm1 is a member of a load balancer with it, and OVN 25.03 sends answers
	// of members through the gateway.)
	fip := c.out.tcp("172.24.4.21", 443, fipNear)
	central := c.out.tcp("172.24.4.22", 443)
	neighbours := p.both("ssh between nodes", p.connect("ssh between nodes", c.vm1.tcp(c.vm2.ip, 22, c.vm2.mac), "vm2"), "vm1", "vm2")
	p.both("postgres on one node", p.connect("postgres on one node", c.vm1.tcp(c.vm4.ip, 5432), "vm4"), "vm1", "vm4")
	p.both("postgres on another node", p.connect("postgres on another node", c.vm1.tcp(c.vm5.ip, 5432), "vm5"), "vm1", "vm5")
	snat := p.both("SNAT at the gateway", p.connect("SNAT at the gateway", collide(c.vm2), "ext0"), "vm2", "ext0")
	p.both("SNAT with a source port that was taken", p.connect("SNAT with a source port that was taken", collide(c.vm8), "ext0"), "vm8", "ext0")
	dnat := p.both("a distributed floating IP", p.connect("a distributed floating IP", fip, "vm1"), "ext0", "vm1")
	p.both("a floating IP on the gateway", p.connect("a floating IP on the gateway", central, "vm3"), "ext0", "vm3")
	p.both("out through a distributed floating IP", p.connect("out through a distributed floating IP", c.vm1.tcp(anywhere, 443), "ext0"), "vm1", "ext0")
	p.both("out through a floating IP on the gateway", p.connect("out through a floating IP on the gateway", c.vm3.tcp(anywhere, 443), "ext0"), "vm3", "ext0")
	p.both("a VIP with one member", p.connect("a VIP with one member", c.vm1.tcp("192.168.10.101", 443), "vm2"), "vm1", "vm2")
	p.both("a VIP from another network", p.connect("a VIP from another network", c.vm4.tcp("192.168.10.101", 443), "vm2"), "vm4", "vm2")
	p.both("a VIP whose member is the client", p.connect("a VIP whose member is the client", c.vm1.tcp("192.168.10.102", 8080), "vm1"), "vm1", "vm1")
	p.both("a VIP behind a floating IP", p.connect("a VIP behind a floating IP", c.out.tcp("172.24.4.40", 443), "vm2"), "ext0", "vm2")
	p.both("IPv6 between nodes", p.connect("IPv6 between nodes", c.vm1.tcp(c.vm2.ip6, 80, c.vm2.mac), "vm2"), "vm1", "vm2")
	p.both("SNAT of IPv6", p.connect("SNAT of IPv6", c.vm2.tcp(anywhere6, 443), "ext0"), "vm2", "ext0")
	p.both("a VIP of IPv6", p.connect("a VIP of IPv6", c.vm1.tcp("fd00:10::100", 80), "vm2"), "vm1", "vm2")
	p.both("an IPv6 VIP whose member is the client", p.connect("an IPv6 VIP whose member is the client", c.vm1.tcp("fd00:10::102", 80), "vm1"), "vm1", "vm1")
	p.both("from the provider VLAN to a tenant network", p.connect("from the provider VLAN to a tenant network", c.vm6.tcp(c.vm1.ip, 80), "vm1"), "vm6", "vm1")
	c.short(p, neighbours, snat, dnat)
}

// short opens connections of UDP and ICMP, which conntrack forgets after 30 seconds.
func (c cloud) short(p *plan, neighbours, snat, dnat *connection) {
	dns := p.connect("DNS through a VIP", c.vm1.udp("192.168.10.103", 53), "vm5")
	ping := p.connect("a ping through SNAT", c.vm2.ping(anywhere), "ext0")
	near := p.connect("a ping through a floating IP", c.out.ping("172.24.4.22"), "vm3")
	ping6 := p.connect("a ping through SNAT of IPv6", c.vm2.ping(anywhere6), "ext0")
	p.delivered("vm5", "DNS through a VIP: a further packet of the client", dns.forth()).established()
	p.delivered("vm1", "DNS through a VIP: an answer", dns.back()).established()
	p.delivered("ext0", "a ping through SNAT: a further request", ping.forth()).established()
	p.delivered("vm2", "a ping through SNAT: a further answer", ping.back()).established()
	p.delivered("vm3", "a ping through a floating IP: a further request", near.forth()).established()
	p.delivered("ext0", "a ping through a floating IP: a further answer", near.back()).established()
	p.delivered("ext0", "a ping through SNAT of IPv6: a further request", ping6.forth()).established()
	p.delivered("vm2", "a ping through SNAT of IPv6: a further answer", ping6.back()).established()
	// Errors belong to the connection that they are about.
	p.delivered("vm1", "a host of the same network reports a port as unreachable", neighbours.failure(3, 3, "")).established()
	p.delivered("vm2", "the peer of a connection through SNAT reports an error", snat.failure(3, 1, "")).established()
	p.delivered("vm2", "a router on the way of a connection through SNAT reports an error", snat.failure(11, 0, "203.0.113.77")).established()
	p.delivered("ext0", "a VM behind a floating IP reports an error", dnat.failure(3, 3, "")).established()
}

func (c cloud) switched(p *plan) {
	to2 := c.vm2.mac
	p.delivered("vm2", "a ping between nodes", c.vm1.ping(c.vm2.ip, to2)).group("web-ping-blue")
	p.delivered("vm2", "ssh from a member of the remote group", c.vm1.tcp(c.vm2.ip, 22, to2)).group("web-ssh")
	p.delivered("vm3", "ssh on one node from a member of the remote group", c.vm2.tcp(c.vm3.ip, 22, c.vm3.mac)).group("web-ssh")
	p.dropped("ACL", "ssh from a VM that is not in the remote group", c.vm8.tcp(c.vm2.ip, 22, to2)).by("acl", groupDrop)
	p.delivered("vm2", "https, the only thing that the sender's group allows", c.vm8.tcp(c.vm2.ip, 443, to2)).group("web-https")
	p.dropped("ACL", "http, which the sender's group does not allow", c.vm8.tcp(c.vm2.ip, 80, to2)).by("acl", groupDrop)
	p.dropped("ACL", "a ping, which the sender's group does not allow", c.vm8.ping(c.vm1.ip, c.vm1.mac)).by("acl", groupDrop)
	p.delivered("vm8", "a ping on one node", c.vm1.ping(c.vm8.ip, c.vm8.mac)).group("strict-ping")
	p.dropped("ACL", "http to a VM that only allows pings", c.vm1.tcp(c.vm8.ip, 80, c.vm8.mac)).by("acl", groupDrop)
	p.dropped("ACL", "a TCP port that no rule allows", c.vm1.tcp(c.vm2.ip, 9999, to2)).by("acl", groupDrop)
	p.dropped("ACL", "a UDP port that no rule allows", c.vm1.udp(c.vm2.ip, 5353, to2)).by("acl", groupDrop)
	p.dropped("ACL", "SCTP, which no rule allows", c.vm1.sctp(c.vm2.ip, 3868, to2)).by("acl", groupDrop)
	p.answered("vm1", "reject", "telnet is rejected", c.vm1.tcp(c.vm2.ip, 23, to2)).by("acl", "telnet")
	p.answered("vm2", "reject", "telnet is rejected on one node", c.vm2.tcp(c.vm3.ip, 23, c.vm3.mac)).by("acl", "telnet")
	p.answered("vm1", "reject", "TFTP is rejected", c.vm1.udp(c.vm2.ip, 69, to2)).by("acl", "telnet")
	p.answered("vm1", "reject", "IPv6 telnet is rejected", c.vm1.tcp(c.vm2.ip6, 23, to2)).by("acl", "telnet")
	p.answered("vm1", "reject", "IPv6 TFTP is rejected", c.vm1.udp(c.vm2.ip6, 69, to2)).by("acl", "telnet")
	p.answered("vm4", "reject", "telnet is rejected behind a router", c.vm4.tcp(c.vm1.ip, 23)).by("acl", "telnet")
	p.dropped("not bound", "a VM that runs nowhere", c.vm1.ping("192.168.10.11", "fa:16:3e:10:00:0b"))
	p.dropped("not bound", "a VM that runs nowhere, through a router", c.vm4.tcp("192.168.10.11", 80))
	p.delivered("vm2", "IPv6 http", c.vm1.tcp(c.vm2.ip6, 80, to2)).group("web-http6")
	p.delivered("vm2", "an IPv6 ping", c.vm1.ping(c.vm2.ip6, to2)).group("web-ping6")
	p.dropped("ACL", "IPv6 ssh", c.vm1.tcp(c.vm2.ip6, 22, to2)).by("acl", groupDrop)
	p.dropped("ACL", "IPv6 UDP", c.vm1.udp(c.vm2.ip6, 53, to2)).by("acl", groupDrop)
	p.dropped("no such port", "a MAC that no port of the network has", c.vm1.ping("192.168.10.99", "fa:16:3e:10:00:99"))
	spoof := c.vm1.tcp(c.vm2.ip, 22, to2)
	spoof.src = "fa:16:3e:10:00:77"
	p.dropped("port security", "a foreign source MAC", spoof)
	spoof = c.vm1.tcp(c.vm2.ip, 22, to2)
	spoof.sip = "192.168.10.77"
	p.dropped("port security", "a foreign source address", spoof)
	spoof = c.vm1.ping(c.vm2.ip6, to2)
	spoof.sip = "fd00:10::77"
	p.dropped("port security", "a foreign IPv6 source address", spoof)
	spoof = c.vm2.udp(c.vm3.ip, 5005, c.vm3.mac)
	spoof.sip = "192.168.20.5"
	p.dropped("port security", "the address of a VM of another network", spoof)
	p.delivered("vm2", "a broadcast ping", c.vm1.ping("192.168.10.255", "ff:ff:ff:ff:ff:ff"))
	p.dropped("ACL", "a UDP broadcast", c.vm1.udp("192.168.10.255", 137, "ff:ff:ff:ff:ff:ff")).by("acl", groupDrop)
	p.delivered("vm4", "SNMP without state", c.vm1.udp(c.vm4.ip, 161)).by("acl", "snmp")
	p.delivered("vm5", "SNMP without state on another node", c.vm1.udp(c.vm5.ip, 161)).by("acl", "snmp")
}

// closed sends to ports that nothing allows, on each kind of way.
func (c cloud) closed(p *plan) {
	for _, way := range []struct {
		from host
		to   string
		near []string
	}{
		{c.vm1, c.vm2.ip, []string{c.vm2.mac}},
		{c.vm2, c.vm3.ip6, []string{c.vm3.mac}},
		{c.vm4, c.vm1.ip, nil},
		{c.vm2, c.vm4.ip, nil},
		{c.vm3, c.vm5.ip, nil},
		{c.outVLAN, c.vm7.ip, []string{c.vm7.mac}},
		{c.out, "172.24.4.21", []string{fipNear}},
		{c.out, "172.24.4.22", nil},
		{c.out6, "2001:db8:4::26", nil},
		{c.vm8, anywhere, nil},
	} {
		for _, port := range []uint16{21, 8443, 27017} {
			p.dropped("ACL", fmt.Sprintf("TCP port %d from %s to %s", port, way.from.label, way.to), way.from.tcp(way.to, port, way.near...)).by("acl", groupDrop)
		}
		p.dropped("ACL", fmt.Sprintf("UDP from %s to %s", way.from.label, way.to), way.from.udp(way.to, 5353, way.near...)).by("acl", groupDrop)
	}
}

// resolved sends what OVN answers by itself: ARP, ND, RA, DHCP.
func (c cloud) resolved(p *plan) {
	p.answered("vm1", "ARP reply", "ARP for the router", c.vm1.arp("192.168.10.1"))
	p.answered("vm1", "ARP reply", "ARP for a VM of another node", c.vm1.arp(c.vm2.ip))
	p.answered("vm1", "ARP reply", "ARP for a VIP, which is flooded and answered", c.vm1.arp("192.168.10.101"))
	p.dropped("port security", "ARP with a foreign sender address", c.vm1.arpAs("192.168.10.77", "192.168.10.1"))
	p.answered("vm1", "ND advertisement", "ND for the router", c.vm1.neighbour("fd00:10::1"))
	p.answered("vm1", "ND advertisement", "ND for a VM of another node", c.vm1.neighbour(c.vm2.ip6))
	p.answered("vm1", "router advertisement", "a router solicitation", c.vm1.routers("fe80::f816:3eff:fe10:5"))
	p.answered("vm1", "DHCP offer", "DHCP", c.vm1.discover())
	p.answered("vm2", "DHCP offer", "DHCP on another node", c.vm2.discover())
	p.answered("ext0", "ARP reply", "ARP for a distributed floating IP", c.out9.arp("172.24.4.21"))
	p.answered("ext0", "ARP reply", "ARP for a floating IP on the gateway", c.out9.arp("172.24.4.22"))
	p.answered("ext0", "ARP reply", "ARP for the router's outer address", c.out9.arp("172.24.4.10"))
}

func (c cloud) routed(p *plan) {
	p.delivered("vm4", "postgres on one node", c.vm1.tcp(c.vm4.ip, 5432)).group("db-postgres")
	p.delivered("vm5", "postgres on another node", c.vm1.tcp(c.vm5.ip, 5432)).group("db-postgres")
	p.delivered("vm5", "postgres over IPv6", c.vm1.tcp(c.vm5.ip6, 5432)).group("db-postgres6")
	p.dropped("ACL", "mysql", c.vm1.tcp(c.vm5.ip, 3306)).by("acl", groupDrop)
	p.dropped("ACL", "https to a database", c.vm8.tcp(c.vm5.ip, 443)).by("acl", groupDrop)
	p.delivered("vm1", "http", c.vm4.tcp(c.vm1.ip, 80)).group("web-http")
	p.delivered("vm2", "the middle of a range of ports", c.vm4.udp(c.vm2.ip, 5005)).group("web-range")
	p.delivered("vm2", "the last port of a range", c.vm4.udp(c.vm2.ip, 5010)).group("web-range")
	p.dropped("ACL", "the port after a range", c.vm4.udp(c.vm2.ip, 5011)).by("acl", groupDrop)
	p.delivered("vm5", "a ping on another node", c.vm1.ping(c.vm5.ip)).group("db-ping")
	p.delivered("vm5", "an IPv6 ping on another node", c.vm1.ping(c.vm5.ip6)).group("db-ping6")
	p.answered("vm1", "echo reply", "a ping of the router", c.vm1.ping("192.168.10.1"))
	p.answered("vm1", "echo reply", "a ping of the router's other side", c.vm1.ping("192.168.20.1"))
	p.answered("vm1", "echo reply", "an IPv6 ping of the router", c.vm1.ping("fd00:10::1"))
	late := c.vm1.ping(c.vm5.ip)
	late.ttl = 1
	p.answered("vm1", "TTL exceeded", "the TTL ends at the router", late)
	late = c.vm1.ping(c.vm5.ip6)
	late.ttl = 1
	p.answered("vm1", "TTL exceeded", "the hop limit ends at the router", late)
	p.dropped("no route", "a route that discards", c.vm1.udp("10.66.1.1", 80)).by("route", "10.66.0.0/16")
	p.dropped("no route", "no route", c.vm9.ping("198.51.100.9"))
	p.dropped("no route", "no IPv6 route", c.vm9.ping("2001:db8:99::1"))
	p.delivered("vm10", "without security groups", c.vm9.tcp(c.vm10.ip, 4000))
	p.delivered("vm9", "without security groups, back", c.vm10.udp(c.vm9.ip, 4000))
	p.delivered("vm10", "IPv6 without security groups", c.vm9.tcp(c.vm10.ip6, 4000))
	p.dropped("port security", "a route to a VM that only takes its own address", c.vm1.tcp("10.77.1.1", 80)).by("route", "10.77.0.0/16")
	p.dropped("port security", "a route with two next hops", c.vm4.tcp("10.88.1.1", 80)).by("route", "10.88.0.0/16").chosen()
	p.dropped("explicit drop", "a policy that drops", c.vm4.tcp("203.0.113.9", 443)).by("policy", "200")
	p.dropped("missing flow", "a VM whose flow was removed", c.vm9.tcp("192.168.40.12", 4000))
	p.dropped("missing flow", "a VM whose flow was removed, on one node", c.vm10.ping("192.168.40.12", "fa:16:3e:40:00:0c"))
	p.answered("vm9", "echo reply", "a ping of a router without uplink", c.vm9.ping("192.168.40.1"))
	p.answered("vm9", "ND advertisement", "ND for a router without uplink", c.vm9.neighbour("fd00:30::1"))
	first := p.delivered("vm4", "a packet that opens the way for its answer", asked(c.vm1.udp(c.vm4.ip, 53), 45001)).group("db-dns")
	p.delivered("vm1", "the answer, which only an earlier packet of this list allows", asked(c.vm4.udp(c.vm1.ip, 45001), 53)).afterwards(first)
	p.dropped("ACL", "an answer without a question", asked(c.vm4.udp(c.vm1.ip, 45002), 53)).by("acl", groupDrop)
}

// asked returns a frame with a certain source port.
func asked(f frame, port uint16) frame {
	f.sport = port
	return f
}

func (c cloud) outward(p *plan) {
	p.delivered("ext0", "a ping through a distributed floating IP", c.vm1.ping(c.out.ip)).by("nat", "172.24.4.21")
	p.delivered("ext0", "https through a distributed floating IP", c.vm1.tcp(anywhere, 443)).by("nat", "172.24.4.21")
	p.delivered("ext0", "https through SNAT at the gateway", c.vm2.tcp(anywhere, 443)).by("nat", "172.24.4.10")
	p.delivered("ext0", "a ping through SNAT at the gateway", c.vm2.ping(anywhere)).by("nat", "172.24.4.10")
	p.delivered("ext0", "UDP through SNAT at the gateway", c.vm2.udp(anywhere, 123)).by("nat", "172.24.4.10")
	p.delivered("ext0", "through a floating IP on the gateway", c.vm3.tcp(anywhere, 443)).by("nat", "172.24.4.22")
	p.delivered("ext0", "through the floating IP of another node", c.vm5.tcp(c.out.ip, 443)).by("nat", "172.24.4.25")
	p.delivered("ext0", "a policy chooses another next hop", c.vm5.tcp(anywhere, 443)).by("policy", "150")
	p.delivered("ext0", "https from a VM that may do nothing else", c.vm8.tcp(anywhere, 443)).by("nat", "172.24.4.10")
	p.dropped("ACL", "http from a VM that may only do https", c.vm8.tcp(anywhere, 80)).by("acl", groupDrop)
	p.delivered("ext0", "https through SNAT of IPv6", c.vm2.tcp(anywhere6, 443)).by("nat", "2001:db8:4::10")
	p.delivered("ext0", "a ping through SNAT of IPv6", c.vm2.ping(anywhere6)).by("nat", "2001:db8:4::10")
	p.delivered("ext0", "through a floating IP of IPv6", c.vm5.tcp(anywhere6, 443)).by("nat", "2001:db8:4::26")
	p.answered("ext0", "ARP request", "a neighbour outside that does not answer", c.vm2.ping("172.24.4.77"))
	p.answered("ext0", "ND solicitation", "a neighbour outside that does not answer, IPv6", c.vm2.ping("2001:db8:4::77"))
	late := c.vm2.ping(anywhere)
	late.ttl = 1
	p.answered("vm2", "TTL exceeded", "the TTL ends at the router on the way out", late)
	p.delivered("vm3", "from one floating IP to another", c.vm1.tcp("172.24.4.22", 443)).group("web-https")
}

func (c cloud) inward(p *plan) {
	p.delivered("vm1", "http to a distributed floating IP", c.out.tcp("172.24.4.21", 80, fipNear)).group("web-http")
	p.dropped("ACL", "ssh to a distributed floating IP", c.out.tcp("172.24.4.21", 22, fipNear)).by("acl", groupDrop)
	p.dropped("ACL", "a ping of a distributed floating IP", c.out.ping("172.24.4.21", fipNear)).by("acl", groupDrop)
	p.delivered("vm3", "a ping of a floating IP on the gateway", c.out.ping("172.24.4.22")).group("icmp-ping")
	p.delivered("vm3", "https to a floating IP on the gateway", c.out.tcp("172.24.4.22", 443)).group("web-https")
	p.dropped("ACL", "mysql to a floating IP on the gateway", c.out.tcp("172.24.4.22", 3306)).by("acl", groupDrop)
	p.delivered("vm4", "a ping of a database's floating IP", c.out.ping("172.24.4.24")).group("db-ping")
	p.dropped("ACL", "postgres on a database's floating IP", c.out.tcp("172.24.4.24", 5432)).by("acl", groupDrop)
	p.delivered("vm5", "a ping of a distributed floating IP of another node", c.out.ping("172.24.4.25", fipFar)).group("db-ping")
	p.delivered("vm5", "a ping of a floating IP of IPv6", c.out6.ping("2001:db8:4::26")).group("db-ping6")
	p.delivered("vm2", "a VIP behind a floating IP", c.out.tcp("172.24.4.40", 443)).by("load_balancer", madeUUID("lb-single"))
	p.answered("ext0", "echo reply", "a ping of the router's outer address", c.out.ping("172.24.4.10"))
	p.answered("ext0", "echo reply", "an IPv6 ping of the router's outer address", c.out6.ping("2001:db8:4::10"))
	p.dropped("explicit drop", "ssh to the router", c.out.tcp("172.24.4.10", 22))
	p.delivered("vm2", "the inner address of a VM from outside", c.out.tcp(c.vm2.ip, 80)).group("web-http")
	p.dropped("ACL", "the inner address of a VM from outside, a closed port", c.out.tcp(c.vm2.ip, 8080)).by("acl", groupDrop)
	p.dropped("no route", "a discarded network from outside", c.out.tcp("10.66.2.2", 80)).by("route", "10.66.0.0/16")
	late := c.out.ping("172.24.4.22")
	late.ttl = 1
	p.answered("ext0", "TTL exceeded", "the TTL ends at the gateway", late)
	p.delivered("compute1:br-ex", "a MAC that no switch has learned is flooded", c.out.udp("172.24.4.200", 4000, "02:00:00:00:00:c8"))
}

func (c cloud) provider(p *plan) {
	p.delivered("vm7", "a ping on the provider VLAN", c.vm6.ping(c.vm7.ip, c.vm7.mac)).group("icmp-ping")
	p.dropped("ACL", "http on the provider VLAN", c.vm6.tcp(c.vm7.ip, 80, c.vm7.mac)).by("acl", groupDrop)
	p.delivered("ext0", "to a host of the provider VLAN", c.vm6.tcp(c.outVLAN.ip, 80, c.outVLAN.mac))
	p.delivered("vm6", "from a host of the provider VLAN", c.outVLAN.tcp(c.vm6.ip, 22, c.vm6.mac))
	p.delivered("vm7", "a ping from a host of the provider VLAN", c.outVLAN.ping(c.vm7.ip, c.vm7.mac)).group("icmp-ping")
	p.dropped("ACL", "http from a host of the provider VLAN", c.outVLAN.tcp(c.vm7.ip, 80, c.vm7.mac)).by("acl", groupDrop)
	p.delivered("vm1", "from the provider VLAN to a tenant network", c.vm6.tcp(c.vm1.ip, 80)).group("web-http")
	p.delivered("vm2", "from a host of the provider VLAN to a tenant network", c.outVLAN.tcp(c.vm2.ip, 443)).group("web-https")
	p.delivered("vm6", "from a tenant network to the provider VLAN", c.vm1.tcp(c.vm6.ip, 8080))
	p.dropped("ACL", "from a tenant network to a closed port on the provider VLAN", c.vm1.tcp(c.vm7.ip, 8080)).by("acl", groupDrop)
	p.delivered("ext0", "from the provider VLAN through SNAT", c.vm6.tcp(anywhere, 443)).by("nat", "172.24.4.10")
	p.answered("vm6", "echo reply", "a ping of the router on the gateway", c.vm6.ping("10.120.0.1"))
	p.delivered("ext0", "ARP on the provider VLAN", c.vm6.arp(c.outVLAN.ip))
}

func (c cloud) sized(p *plan) {
	of := func(f frame, size int) frame {
		f.size = size
		return f
	}
	p.delivered("vm2", "as large as a tunnel takes", of(c.vm1.ping(c.vm2.ip, c.vm2.mac), 1442)).group("web-ping-blue")
	p.dropped("MTU", "larger than a tunnel takes", of(c.vm1.ping(c.vm2.ip, c.vm2.mac), 1460))
	p.dropped("MTU", "larger than the interface of a VM takes", of(c.vm1.ping(c.vm8.ip, c.vm8.mac), 1500))
	p.delivered("ext0", "as large as the gateway takes", of(c.vm2.ping(anywhere), 1400)).by("nat", "172.24.4.10")
	p.answered("vm2", "fragmentation needed", "larger than the gateway takes", of(c.vm2.ping(anywhere), 1420))
	large := of(c.vm2.tcp(anywhere, 443), 1420)
	large.flags, large.df = "A", true
	p.answered("vm2", "fragmentation needed", "larger than the gateway takes, not to be fragmented", large)
	p.answered("vm2", "fragmentation needed", "larger than the gateway takes, IPv6", of(c.vm2.ping(anywhere6), 1420))
	p.dropped("MTU", "IPv6 larger than a tunnel takes", of(c.vm1.ping(c.vm2.ip6, c.vm2.mac), 1460))
}

func (c cloud) balanced(p *plan) {
	lb := func(s *step, name string) { s.by("load_balancer", madeUUID("lb-"+name)) }
	for i := range 3 {
		f := c.vm8.tcp("192.168.10.100", 80)
		f.from, f.src, f.sip = c.vm4.label, c.vm4.mac, c.vm4.ip
		f.dst = c.vm4.gw
		s := p.delivered("vm1", fmt.Sprintf("a VIP with three members, client port %d", 42000+i), asked(f, uint16(42000+i))).chosen()
		s.to = []string{"vm1", "vm2", "vm3"}
		lb(s, "many")
	}
	lb(p.delivered("vm2", "a VIP with one member", c.vm1.tcp("192.168.10.101", 443)), "single")
	lb(p.delivered("vm2", "a VIP from another network", c.vm4.tcp("192.168.10.101", 443)), "single")
	lb(p.delivered("vm2", "a VIP from a VM that may only do https", c.vm8.tcp("192.168.10.101", 443)), "single")
	p.dropped("ACL", "a VIP that the client's group does not allow", c.vm8.tcp("192.168.10.100", 80)).by("acl", groupDrop)
	lb(p.delivered("vm1", "a VIP whose only member is the client", c.vm1.tcp("192.168.10.102", 8080)), "hairpin")
	lb(p.delivered("vm1", "a VIP whose only member is another VM", c.vm2.tcp("192.168.10.102", 8080)), "hairpin")
	lb(p.delivered("vm5", "DNS through a VIP", c.vm1.udp("192.168.10.103", 53)), "dns")
	lb(p.delivered("vm5", "DNS through a VIP from another node", c.vm2.udp("192.168.10.103", 53)), "dns")
	lb(p.answered("vm1", "reject", "a VIP without members", c.vm1.tcp("192.168.10.104", 80)), "empty")
	lb(p.delivered("vm2", "a VIP of IPv6", c.vm1.tcp("fd00:10::100", 80)), "six")
	lb(p.delivered("vm1", "an IPv6 VIP whose only member is the client", c.vm1.tcp("fd00:10::102", 80)), "hairpin6")
}

// invalid sends packets that no connection allows, and those that open one in the middle.
func (c cloud) invalid(p *plan) {
	with := func(f frame, flags string) frame {
		f.flags = flags
		return f
	}
	p.dropped("ACL", "a SYN|ACK without a connection is invalid", with(c.vm1.tcp(c.vm2.ip, 22, c.vm2.mac), "SA"))
	// It is invalid for the kernel's conntrack.
	p.delivered("vm2", "a RST without a connection is new for the conntrack of userspace", with(c.vm1.tcp(c.vm2.ip, 22, c.vm2.mac), "R"))
	p.delivered("vm2", "an ACK without a connection is new", with(c.vm1.tcp(c.vm2.ip, 22, c.vm2.mac), "A")).group("web-ssh")
	p.dropped("ACL", "an ACK without a connection to a closed port", with(c.vm1.tcp(c.vm2.ip, 9999, c.vm2.mac), "A")).by("acl", groupDrop)
	reply := c.vm1.ping(c.vm2.ip, c.vm2.mac)
	reply.icmp[0] = 0
	p.dropped("ACL", "an echo reply without a request is invalid", reply)
	reply = c.vm1.ping(c.vm2.ip6, c.vm2.mac)
	reply.icmp[0] = 129
	p.dropped("ACL", "an IPv6 echo reply without a request is invalid", reply)
	p.dropped("explicit drop", "a SYN|ACK to a floating IP", with(c.out.tcp("172.24.4.22", 443), "SA"))
	p.delivered("vm3", "an ACK to a floating IP", with(c.out.tcp("172.24.4.22", 443), "A")).group("web-https")
	p.dropped("explicit drop", "a SYN|ACK to the address of SNAT", with(asked(c.out.tcp("172.24.4.10", 40000), 443), "SA"))
	p.delivered("vm10", "a SYN|ACK where no security group is", with(c.vm9.tcp(c.vm10.ip, 22), "SA"))
}

// talks holds conversations of each kind, of whose ports there are captures.
func (c cloud) talks(p *plan) {
	p.converse("ssh between nodes", c.vm1.tcp(c.vm2.ip, 22, c.vm2.mac), "vm2")
	p.converse("DNS through a VIP", c.vm1.udp("192.168.10.103", 53), "vm5")
	p.converse("DNS on one node", c.vm1.udp(c.vm4.ip, 53), "vm4")
	p.converse("a ping between nodes", c.vm1.ping(c.vm2.ip, c.vm2.mac), "vm2")
	p.converse("an IPv6 ping through the router", c.vm1.ping(c.vm5.ip6), "vm5")
	p.converse("a ping through SNAT", c.vm2.ping(anywhere), "ext0")
	p.converse("https through SNAT", c.vm2.tcp(anywhere, 443), "ext0")
	p.converse("https to a floating IP", c.out.tcp("172.24.4.22", 443), "vm3")
	p.converse("https to a distributed floating IP", c.out.tcp("172.24.4.21", 443, fipNear), "vm1")
	p.converse("a VIP with one member", c.vm1.tcp("192.168.10.101", 443), "vm2")
	p.converse("a VIP whose member is the client", c.vm1.tcp("192.168.10.102", 8080), "vm1")
	for i := range 3 {
		p.converse(fmt.Sprintf("a VIP with three members, client %d", i+1), asked(c.vm4.tcp("192.168.10.100", 80), uint16(43000+i)), "vm1", "vm2", "vm3")
	}
}
