package sets

import "fmt"

// tenants holds the end points of the set neutron-routers.
type tenants struct {
	a1, a2, a3, b1, b2, c1, d1     host
	e1, e2, f1, f2, h1, h2, k1, ha host
	out, out9                      host // the provider's router, and a host beside it
}

func newTenants() tenants {
	vm := func(label string, network, octet int, router string) host {
		return host{label: label, mac: fmt.Sprintf("fa:16:3e:%02x:00:%02d", network, octet),
			ip: fmt.Sprintf("10.%d.0.%d", network, octet), ip6: fmt.Sprintf("fd00:%d::%d", network, octet), gw: router}
	}
	gw := func(network int) string { return fmt.Sprintf("fa:16:3e:%02x:00:01", network) }
	return tenants{
		a1: vm("a1", 201, 11, gw(201)), a2: vm("a2", 201, 12, gw(201)), a3: vm("a3", 201, 13, gw(201)),
		b1: vm("b1", 202, 11, gw(202)), b2: vm("b2", 202, 12, gw(202)),
		c1: vm("c1", 203, 11, gw(203)), d1: vm("d1", 204, 11, gw(204)),
		e1: vm("e1", 205, 11, gw(205)), e2: vm("e2", 205, 12, gw(205)),
		f1: vm("f1", 206, 11, gw(206)), f2: vm("f2", 206, 12, gw(206)),
		h1: vm("h1", 207, 11, gw(207)), h2: vm("h2", 207, 12, gw(207)), k1: vm("k1", 207, 13, gw(207)),
		ha:   host{label: "peer", mac: "fa:16:3e:d0:00:09", ip: "169.254.192.9", ip6: "fd00:208::9", gw: "fa:16:3e:d0:00:13"},
		out:  host{label: "ext0", mac: "02:00:00:00:71:01", ip: "203.0.113.1", ip6: "2001:db8:113::1", gw: "fa:16:3e:aa:00:05"},
		out9: host{label: "ext0", mac: "02:00:00:00:71:09", ip: "203.0.113.9", ip6: "2001:db8:113::9", gw: "fa:16:3e:aa:00:05"},
	}
}

// MACs of the devices by which routers of the set reach the external network, and addresses that they
// translate.
const (
	outsideOfR1   = "fa:16:3e:aa:00:05"
	snatOfR3      = "fa:16:3e:aa:00:06"
	outsideOfR4   = "fa:16:3e:aa:00:07"
	fipOnCompute1 = "fa:16:3e:aa:00:11"
	fipOnCompute2 = "fa:16:3e:aa:00:12"

	floatingA1 = "203.0.113.21"
	floatingB2 = "203.0.113.22"
	floatingH1 = "203.0.113.24"
	floatingE1 = "203.0.113.31"
	floatingF2 = "203.0.113.32"
	metadata   = "169.254.169.254"
)

// routers is the plan of the set neutron-routers.
func routers(p *plan) {
	t := newTenants()
	t.meet(p)
	t.connections(p)
	t.legacy(p)
	t.floating(p)
	t.distributed(p)
	t.available(p)
	t.themselves(p)
	t.sizes(p)
	t.unreachable(p)
	t.refused(p)
	t.invalid(p)
}

// meet lets switches learn where the hosts and the routers are.
func (t tenants) meet(p *plan) {
	vms := []host{t.a1, t.a2, t.a3, t.b1, t.b2, t.c1, t.d1, t.e1, t.e2, t.f1, t.f2, t.h1, t.h2, t.k1}
	p.hosts = append(vms, t.ha, t.out, t.out9)
	for i, node := range []string{"compute1", "compute2", "network", "network2"} {
		p.tell(node+" announces itself on the underlay", host{label: node + ":br-eth0", mac: fmt.Sprintf("52:54:00:28:00:%d", 11+i), ip: fmt.Sprintf("192.0.2.%d", 11+i)}.arp(fmt.Sprintf("192.0.2.%d", 11+i)))
	}
	for _, h := range vms {
		p.tell(h.label+" asks for its router", h.arp(h.ip[:len(h.ip)-2]+"1"), h.label)
	}
	// Bridges know where VMs are that announced themselves. f1 did so too long ago.
	p.announce(t.a1, t.a2, t.a3, t.b1, t.b2, t.c1, t.d1, t.e1, t.e2, t.f2, t.h1, t.h2, t.k1)
	p.tell("b1 asks for router r2", t.b1.arp("10.202.0.254"), "b1")
	p.tell("a host of the network of the routers asks for the active one", t.ha.arp("169.254.192.1"), "peer")
	p.tell("a host of the network of the routers asks for the standby", t.ha.arp("169.254.192.2"), "peer")
	for _, address := range []string{"203.0.113.5", "203.0.113.6", "203.0.113.7", floatingA1, floatingB2, floatingH1, floatingE1, floatingF2} {
		p.tell("the provider's router asks for "+address, t.out.arp(address), "ext0")
	}
	p.tell("a host outside asks for router r1", t.out9.arp("203.0.113.5"), "ext0")
}

// passage is a packet, and the label of the end point that gets it.
type passage struct {
	shows string
	f     frame
	to    string
}

func (t tenants) connections(p *plan) {
	for _, c := range []passage{
		{"ssh through router r1", t.a1.tcp(t.b2.ip, 22), "b2"},
		{"SNAT of r1", t.a2.tcp(t.out9.ip, 443), "ext0"},
		{"in by a floating IP of r1", t.out.tcp(floatingA1, 22), "a1"},
		{"out by a floating IP of r1", t.b2.tcp(t.out.ip, 443), "ext0"},
		{"from a VM to a floating IP of r1", t.a2.tcp(floatingB2, 22), "b2"},
		{"from a floating IP to another of r1", t.a1.tcp(floatingB2, 22), "b2"},
		{"IPv6 ssh through router r1", t.a1.tcp(t.b2.ip6, 22), "b2"},
		{"IPv6 to outside", t.b2.tcp(t.out.ip6, 443), "ext0"},
		{"ssh through router r2", t.c1.tcp(t.d1.ip, 22), "d1"},
		{"ssh through router r3 between nodes", t.e1.tcp(t.f2.ip, 22), "f2"},
		{"ssh through router r3 on one node", t.e1.tcp(t.f1.ip, 22), "f1"},
		{"in by a floating IP of r3", t.out.tcp(floatingE1, 22, fipOnCompute1), "e1"},
		{"out by a floating IP of r3", t.f2.tcp(t.out.ip, 443), "ext0"},
		{"SNAT of r3", t.e2.tcp(t.out9.ip, 443), "ext0"},
		{"SNAT of r4", t.h2.tcp(t.out9.ip, 443), "ext0"},
		{"in by a floating IP of r4", t.out.tcp(floatingH1, 22, outsideOfR4), "h1"},
		{"out by a floating IP of r4", t.h1.tcp(t.out.ip, 443), "ext0"},
		{"from router r1 to a floating IP of r3", t.a2.tcp(floatingE1, 22), "e1"},
		{"from a floating IP to another of r3", t.f2.tcp(floatingE1, 22), "e1"},
	} {
		p.both(c.shows, p.connect(c.shows, c.f, c.to), c.f.from, c.to)
	}
	var opened []exchange
	for _, c := range []passage{
		{"a ping through router r1", t.a1.ping(t.b1.ip), "b1"},
		{"a ping by SNAT of r1", t.a2.ping(t.out.ip), "ext0"},
		{"DNS by SNAT of r1", t.b1.udp(t.out9.ip, 53), "ext0"},
		{"DNS by SNAT of r3", t.f1.udp(t.out9.ip, 53), "ext0"},
		{"a ping to a floating IP of r3", t.out.ping(floatingF2, fipOnCompute2), "f2"},
		{"a ping by a floating IP of r4", t.h1.ping(t.out.ip), "ext0"},
	} {
		opened = append(opened, exchange{p.connect(c.shows, c.f, c.to), c.shows, c.f.from, []string{c.to}})
	}
	for _, e := range opened {
		p.delivered(e.to[0], e.shows+": a further request", e.forth()).established()
		p.delivered(e.client, e.shows+": a further answer", e.back()).established()
	}
	dns := opened[2]
	p.delivered("b1", "the server of DNS by SNAT of r1 reports its port as unreachable", dns.failure(3, 3, "")).established()
	p.delivered("b1", "a router on the way of DNS by SNAT of r1 reports an error", dns.failure(11, 0, "192.0.2.77")).established()
	p.delivered("f1", "the server of DNS by SNAT of r3 reports its port as unreachable", opened[3].failure(3, 3, "")).established()
}

func (p *plan) allDelivered(list []passage) {
	p.volley(func() {
		for _, c := range list {
			p.delivered(c.to, c.shows, c.f)
		}
	})
}

// legacy sends through the routers r1 and r2.
func (t tenants) legacy(p *plan) {
	p.allDelivered([]passage{
		{"ssh through router r1 between nodes", t.a1.tcp(t.b2.ip, 22), "b2"},
		{"ssh back through router r1", t.b2.tcp(t.a1.ip, 22), "a1"},
		{"ssh through router r1 to the same node", t.a1.tcp(t.b1.ip, 22), "b1"},
		{"a ping through router r1", t.a1.ping(t.b1.ip), "b1"},
		{"an IPv6 ping through router r1", t.a1.ping(t.b2.ip6), "b2"},
		{"IPv6 ssh through router r1", t.b1.tcp(t.a2.ip6, 22), "a2"},
		{"IPv6 to outside is not translated", t.a2.tcp(t.out.ip6, 443), "ext0"},
		{"an IPv6 ping from outside", t.out.ping(t.a1.ip6), "a1"},
		{"IPv6 ssh from outside", t.out.tcp(t.b2.ip6, 22), "b2"},
		{"SNAT of TCP", t.a2.tcp("192.0.2.9", 443), "ext0"},
		{"SNAT of UDP", t.a2.udp("192.0.2.9", 123), "ext0"},
		{"SNAT of a ping", t.b1.ping("192.0.2.9"), "ext0"},
		{"SNAT by a static route", t.a2.tcp(anywhere, 443), "ext0"},
		{"UDP to the port of the metadata service leaves", t.a2.udp(metadata, 80), "ext0"},
		{"TCP to another port of the metadata service leaves", t.a2.tcp(metadata, 8080), "ext0"},
		{"through a VM that a static route names", t.b1.tcp("10.99.0.5", 80), "a3"},
		{"from outside to the address of a VM", t.out.tcp(t.a1.ip, 22), "a1"},
		{"ssh through router r2", t.c1.tcp(t.d1.ip, 22), "d1"},
		{"a ping through router r2", t.d1.ping(t.c1.ip), "c1"},
	})
	// The kernel redirects the sender, but netfilter drops that as long as it does not know that nothing is to be
	// translated. A later packet of the connection would be redirected, at times that the kernel chooses.
	p.delivered("a3", "a way that leads back into the network", t.a2.udp("10.99.0.5", 5000))
}

// floating sends to and from the floating IPs of r1.
func (t tenants) floating(p *plan) {
	p.allDelivered([]passage{
		{"out by a floating IP", t.a1.tcp("192.0.2.9", 443), "ext0"},
		{"UDP out by a floating IP", t.b2.udp("192.0.2.9", 123), "ext0"},
		{"ssh in by a floating IP", t.out.tcp(floatingA1, 22), "a1"},
		{"a ping in by a floating IP", t.out.ping(floatingB2), "b2"},
		{"from a host beside the provider's router to a floating IP", t.out9.tcp(floatingA1, 22), "a1"},
		{"from a VM to a floating IP", t.a2.tcp(floatingB2, 22), "b2"},
		{"from a VM to a floating IP of its network", t.a2.tcp(floatingA1, 22), "a1"},
		{"from a floating IP to another", t.a1.tcp(floatingB2, 22), "b2"},
		{"from a VM to its own floating IP", t.a1.ping(floatingA1), "a1"},
		{"from router r1 to a floating IP of r3", t.a2.tcp(floatingE1, 22), "e1"},
	})
}

// distributed sends through r3.
func (t tenants) distributed(p *plan) {
	p.allDelivered([]passage{
		{"DVR between nodes", t.e1.tcp(t.f2.ip, 22), "f2"},
		{"DVR between nodes, back", t.f2.tcp(t.e1.ip, 22), "e1"},
		{"a ping by DVR between nodes", t.e2.ping(t.f1.ip), "f1"},
		{"DVR on one node", t.e1.tcp(t.f1.ip, 22), "f1"},
		{"a ping by DVR on one node", t.f2.ping(t.e2.ip), "e2"},
		{"the same network beside DVR", t.e1.tcp(t.e2.ip, 22, t.e2.mac), "e2"},
		{"DVR: out by a floating IP", t.e1.tcp("192.0.2.9", 443), "ext0"},
		{"DVR: UDP out by a floating IP", t.f2.udp("192.0.2.9", 123), "ext0"},
		{"DVR: ssh in by a floating IP", t.out.tcp(floatingE1, 22, fipOnCompute1), "e1"},
		{"DVR: a ping in by a floating IP", t.out.ping(floatingF2, fipOnCompute2), "f2"},
		{"DVR: from a floating IP to another", t.e1.tcp(floatingF2, 22), "f2"},
		{"DVR: from a floating IP to one of r1", t.e1.tcp(floatingA1, 22), "a1"},
		{"DVR: SNAT of TCP", t.e2.tcp("192.0.2.9", 443), "ext0"},
		{"DVR: SNAT of UDP", t.f1.udp("192.0.2.9", 123), "ext0"},
		{"DVR: SNAT of a ping", t.f1.ping(t.out.ip), "ext0"},
		{"DVR: from SNAT to a floating IP", t.e2.tcp(floatingF2, 22), "f2"},
	})
}

// available sends through r4.
func (t tenants) available(p *plan) {
	p.allDelivered([]passage{
		{"HA: SNAT of TCP", t.h2.tcp("192.0.2.9", 443), "ext0"},
		{"HA: SNAT of a ping", t.h2.ping(t.out.ip), "ext0"},
		{"HA: SNAT from the node of the standby", t.k1.tcp("192.0.2.9", 443), "ext0"},
		{"HA: out by a floating IP", t.h1.tcp("192.0.2.9", 443), "ext0"},
		{"HA: ssh in by a floating IP", t.out.tcp(floatingH1, 22, outsideOfR4), "h1"},
		{"HA: from a VM to a floating IP", t.h2.tcp(floatingH1, 22), "h1"},
	})
}

// themselves sends to addresses of the routers.
func (t tenants) themselves(p *plan) {
	ended := func(f frame, ttl uint8) frame {
		f.ttl = ttl
		return f
	}
	const reply, reset, port, exceeded = "ICMP echo reply", "TCP reset", "ICMP port unreachable", "ICMP time exceeded"
	for _, c := range []struct {
		why, shows string
		f          frame
	}{
		{reply, "a ping to router r1", t.a1.ping("10.201.0.1")},
		{reply, "a ping to another address of router r1", t.a1.ping("10.202.0.1")},
		{reply, "a ping to the outer address of router r1", t.a1.ping("203.0.113.5")},
		{reply, "an IPv6 ping to router r1", t.a1.ping("fd00:201::1")},
		{reply, "a ping from outside to router r1", t.out.ping("203.0.113.5")},
		{reply, "an IPv6 ping from outside to router r1", t.out.ping("2001:db8:113::5")},
		{reply, "a ping with TTL 1 to router r1", ended(t.a1.ping("10.201.0.1"), 1)},
		{reply, "a ping to router r3", t.e1.ping("10.205.0.1")},
		{reply, "a ping to another address of router r3", t.e1.ping("10.206.0.1")},
		{reply, "a ping to the snat namespace", t.e2.ping("10.205.0.3", "fa:16:3e:cd:00:03")},
		{reply, "a ping from outside to the snat namespace", t.out.ping("203.0.113.6", snatOfR3)},
		{reply, "a ping from outside to a fip namespace", t.out.ping("203.0.113.41", fipOnCompute1)},
		{reply, "a ping to router r4", t.h1.ping("10.207.0.1")},
		{reply, "a ping to the active one of r4", t.ha.ping("169.254.192.1", "fa:16:3e:d0:00:13")},
		{reply, "a ping to the standby of r4", t.ha.ping("169.254.192.2", "fa:16:3e:d0:00:14")},
		{reset, "a closed port of router r1", t.a1.tcp("10.201.0.1", 23)},
		{reset, "a closed port of router r1 from outside", t.out.tcp("203.0.113.5", 23)},
		{reset, "an IPv6 closed port of router r1", t.a1.tcp("fd00:201::1", 23)},
		{reset, "a closed port of router r3", t.e1.tcp("10.205.0.1", 23)},
		{reset, "a closed port of a fip namespace", t.out.tcp("203.0.113.42", 23, fipOnCompute2)},
		{reset, "a closed port of the standby of r4", t.ha.tcp("169.254.192.2", 23, "fa:16:3e:d0:00:14")},
		{port, "a closed UDP port of router r1", t.a1.udp("10.201.0.1", 5353)},
		{port, "a closed UDP port of the snat namespace from outside", t.out.udp("203.0.113.6", 5353, snatOfR3)},
		{exceeded, "the TTL ends at router r1", ended(t.a1.tcp(t.b2.ip, 22), 1)},
		{exceeded, "the TTL ends at router r1 on the way out", ended(t.a2.udp("192.0.2.9", 33434), 1)},
		{exceeded, "the TTL ends at router r1 on the way in", ended(t.out.tcp(floatingA1, 22), 1)},
		{exceeded, "the hop limit ends at router r1", ended(t.a1.ping(t.b2.ip6), 1)},
		{exceeded, "the TTL ends at router r2", ended(t.c1.tcp(t.d1.ip, 22), 1)},
		{exceeded, "the TTL ends at router r3", ended(t.e1.tcp(t.f2.ip, 22), 1)},
		{exceeded, "the TTL ends at the snat namespace", ended(t.e2.tcp("192.0.2.9", 443), 2)},
		{exceeded, "the TTL ends at the fip namespace", ended(t.e1.tcp("192.0.2.9", 443), 2)},
		{exceeded, "the TTL ends at the fip namespace on the way in", ended(t.out.tcp(floatingE1, 22, fipOnCompute1), 1)},
		{"TCP connection", "the metadata service of router r1", t.a1.tcp(metadata, 80)},
		{"TCP connection", "the metadata service of router r2", t.c1.tcp(metadata, 80)},
		{"TCP connection", "the metadata service of router r3", t.f2.tcp(metadata, 80)},
		{"TCP connection", "the metadata service of router r4", t.h2.tcp(metadata, 80)},
	} {
		p.answered(c.f.from, c.why, c.shows, c.f)
	}
}

// sizes sends packets that are larger than a device of a router takes.
func (t tenants) sizes(p *plan) {
	sized := func(f frame, size int, df bool) frame {
		f.size, f.df = size, df
		return f
	}
	p.answered("ext0", "ICMP fragmentation needed", "larger than the network of a floating IP takes, not to be fragmented", sized(t.out.ping(floatingA1), 1500, true))
	p.dropped("MTU", "DVR: larger than the network of a floating IP takes, not to be fragmented; the router has no way for its answer", sized(t.out.ping(floatingE1, fipOnCompute1), 1500, true))
	p.answered("ext0", "ICMP packet too big", "IPv6 larger than the network takes", sized(t.out.ping(t.a1.ip6), 1500, false))
	p.delivered("a1", "as large as the network of a floating IP takes", sized(t.out.ping(floatingA1), 1430, true))
	p.delivered("b2", "as large as the network takes through router r1", sized(t.a1.ping(t.b2.ip), 1430, true))
	p.delivered("ext0", "as large as the network takes, out", sized(t.a2.ping("192.0.2.9"), 1430, true))
}

// unreachable sends to addresses that no route leads to, or at which no machine answers.
func (t tenants) unreachable(p *plan) {
	p.answered("c1", "ICMP net unreachable", "a router without gateway", t.c1.tcp(anywhere, 443))
	p.answered("c1", "ICMP net unreachable", "a ping through a router without gateway", t.c1.ping("192.0.2.9"))
	p.volley(func() { // the kernel waits three seconds for each
		p.answered("a1", "ICMP host unreachable", "a neighbour that does not answer", t.a1.tcp("10.202.0.99", 22))
		p.answered("a1", "ICMP address unreachable", "an IPv6 neighbour that does not answer", t.a1.tcp("fd00:202::99", 22))
		p.answered("e1", "ICMP host unreachable", "DVR: a neighbour that does not answer", t.e1.tcp("10.206.0.99", 22))
		p.answered("a2", "ICMP host unreachable", "a neighbour outside that does not answer", t.a2.tcp("203.0.113.99", 22))
	})
	p.dropped("route", "a broadcast into another network", t.a1.udp("10.202.0.255", 9))
	p.answered("peer", "ICMP net unreachable", "the standby of r4 has no way", t.ha.tcp(t.h1.ip, 22, "fa:16:3e:d0:00:14"))
	p.answered("peer", "ICMP net unreachable", "the standby of r4 has no way out", t.ha.ping(t.out.ip, "fa:16:3e:d0:00:14"))
}

// refused sends what security groups and rules of the routers drop.
func (t tenants) refused(p *plan) {
	for _, way := range []struct {
		from host
		to   string
		near []string
	}{
		{t.a1, t.b2.ip, nil}, {t.b2, t.a2.ip, nil}, {t.c1, t.d1.ip, nil}, {t.e1, t.f2.ip, nil}, {t.f2, t.e1.ip, nil}, {t.f1, t.e1.ip, nil},
		{t.out, floatingA1, nil}, {t.out, floatingB2, nil}, {t.out, floatingE1, []string{fipOnCompute1}},
		{t.out, floatingF2, []string{fipOnCompute2}}, {t.out, floatingH1, []string{outsideOfR4}}, {t.a2, floatingB2, nil}, {t.h2, floatingH1, nil},
		{t.d1, t.c1.ip, nil}, {t.e1, t.f1.ip, nil}, {t.a2, floatingE1, nil},
	} {
		p.volley(func() {
			for _, port := range []uint16{21, 443, 8064} {
				p.dropped("ACL", fmt.Sprintf("TCP port %d from %s to %s", port, way.from.label, way.to), way.from.tcp(way.to, port, way.near...))
			}
			p.dropped("ACL", fmt.Sprintf("UDP from %s to %s", way.from.label, way.to), way.from.udp(way.to, 5353, way.near...))
		})
	}
	p.dropped("ACL", "IPv6 http through router r1", t.a1.tcp(t.b2.ip6, 80))
	p.dropped("ACL", "IPv6 http from outside", t.out.tcp(t.a1.ip6, 80))
	for _, h := range []host{t.a1, t.c1, t.e1, t.h1} {
		spoof := h.tcp("192.0.2.9", 443)
		spoof.sip = h.ip[:len(h.ip)-2] + "99"
		p.dropped("port security", "a foreign source address before the router, from "+h.label, spoof)
	}
	p.dropped("firewall", "the port of the metadata proxy", t.a1.tcp("10.201.0.1", 9697))
	p.dropped("firewall", "the port of the metadata proxy from outside", t.out.tcp("203.0.113.5", 9697))
	p.dropped("firewall", "the port of the metadata proxy of router r3", t.e1.tcp("10.205.0.1", 9697))
	const otherScope = "fa:16:3e:ca:00:02"
	p.volley(func() {
		p.dropped("firewall", "into another address scope", t.c1.tcp(t.b1.ip, 22))
		p.dropped("firewall", "a ping into another address scope", t.c1.ping(t.b1.ip))
		p.dropped("firewall", "from another address scope", t.b1.tcp(t.c1.ip, 22, otherScope))
		p.dropped("firewall", "a ping from another address scope", t.b1.ping(t.d1.ip, otherScope))
	})
	for _, source := range []string{"10.201.0.1", "127.0.0.1", "203.0.113.5", "255.255.255.255"} {
		martian := t.a3.tcp(t.b1.ip, 22)
		martian.sip = source
		p.dropped("martian", "a source address that no neighbour can have: "+source, martian)
	}
	foreign := t.a3.tcp(t.b1.ip, 22)
	foreign.sip = "192.0.2.50"
	p.delivered("b1", "a source address of another network, which the router does not check", foreign)
}

// invalid sends packets that belong to no connection.
func (t tenants) invalid(p *plan) {
	with := func(f frame, flags string) frame {
		f.flags = flags
		return f
	}
	p.dropped("ACL", "a SYN|ACK without a connection, before the router", with(t.a1.tcp(t.b2.ip, 22), "SA"))
	p.dropped("ACL", "a SYN|ACK without a connection, behind the router", with(t.a3.tcp(t.b2.ip, 22), "SA"))
	p.delivered("ext0", "a SYN|ACK without a connection is not translated", with(t.a3.tcp("192.0.2.9", 443), "SA"))
	p.delivered("ext0", "an ACK without a connection opens one", with(t.a2.tcp("192.0.2.9", 443), "A"))
	p.delivered("ext0", "DVR: an ACK without a connection opens none, and is not translated", with(t.e2.tcp("192.0.2.9", 443), "A"))
	p.delivered("b2", "an ACK without a connection through router r1", with(t.a1.tcp(t.b2.ip, 22), "A"))
	reply := t.a3.ping("192.0.2.9")
	reply.icmp[0] = 0
	p.delivered("ext0", "an echo reply without a request is not translated", reply)
	// IPv6, because a router chooses the source port of IPv4 at random.
	first := p.delivered("ext0", "a packet that opens the way for its answer", asked(t.a2.udp(t.out.ip6, 9000), 45001))
	p.delivered("a2", "its answer", asked(t.out.udp(t.a2.ip6, 45001), 9000)).afterwards(first)
	p.dropped("ACL", "an answer without a question, of IPv6", asked(t.out.udp(t.a2.ip6, 45002), 9000))
	p.delivered("ext0", "DVR: a packet that opens the way for its answer", asked(t.e2.udp(t.out9.ip, 9000), 45002))
	p.answered("ext0", "ICMP port unreachable", "an answer without a question", asked(t.out9.udp("203.0.113.5", 45003), 9000))
}
