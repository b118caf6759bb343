package sets

import "fmt"

// tenants holds the end points of the set neutron-routers.
type tenants struct {
	a1, a2, a3, b1, b2, c1, d1 host
	out, out9                  host // the provider's router, and a host beside it
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
		out:  host{label: "ext0", mac: "02:00:00:00:71:01", ip: "203.0.113.1", ip6: "2001:db8:113::1", gw: "fa:16:3e:aa:00:05"},
		out9: host{label: "ext0", mac: "02:00:00:00:71:09", ip: "203.0.113.9", ip6: "2001:db8:113::9", gw: "fa:16:3e:aa:00:05"},
	}
}

func routers(p *plan) {
	t := newTenants()
	t.meet(p)
	t.connections(p)
	t.between(p)
}

// meet lets switches learn where the hosts and the routers are.
func (t tenants) meet(p *plan) {
	p.hosts = []host{t.a1, t.a2, t.a3, t.b1, t.b2, t.c1, t.d1, t.out, t.out9}
	for i, node := range []string{"compute1", "compute2", "network"} {
		p.tell(node+" announces itself on the underlay", host{label: node + ":br-eth0", mac: fmt.Sprintf("52:54:00:28:00:%d", 11+i), ip: fmt.Sprintf("192.0.2.%d", 11+i)}.arp(fmt.Sprintf("192.0.2.%d", 11+i)))
	}
	for _, h := range []host{t.a1, t.a2, t.a3, t.b1, t.b2, t.c1, t.d1} {
		p.tell(h.label+" asks for its router", h.arp(h.ip[:len(h.ip)-2]+"1"), h.label)
	}
	p.tell("the provider's router asks for router r1", t.out.arp("203.0.113.5"), "ext0")
	p.tell("a host outside asks for router r1", t.out9.arp("203.0.113.5"), "ext0")
}

func (t tenants) connections(p *plan) {
	p.both("ssh through the router", p.connect("ssh through the router", t.a1.tcp(t.b2.ip, 22), "b2"), "a1", "b2")
	p.both("SNAT", p.connect("SNAT", t.a2.tcp(t.out9.ip, 443), "ext0"), "a2", "ext0")
	p.both("a floating IP", p.connect("a floating IP", t.out.tcp("203.0.113.21", 22), "a1"), "ext0", "a1")
}

func (t tenants) between(p *plan) {
	p.delivered("b2", "ssh through the router", t.a1.tcp(t.b2.ip, 22))
	p.delivered("b1", "a ping through the router to the same node", t.a1.ping(t.b1.ip))
	p.delivered("b2", "an IPv6 ping through the router", t.a1.ping(t.b2.ip6))
	p.delivered("d1", "ssh through a router without gateway", t.c1.tcp(t.d1.ip, 22))
	p.delivered("ext0", "SNAT of TCP", t.a2.tcp(anywhere, 443))
	p.delivered("ext0", "SNAT by a floating IP", t.a1.tcp(anywhere, 443))
	p.delivered("a1", "a ping to a floating IP", t.out.ping("203.0.113.21"))
	p.answered("a1", "ICMP echo reply", "a ping to the router", t.a1.ping("10.201.0.1"))
	p.answered("a1", "TCP reset", "a closed port of the router", t.a1.tcp("10.201.0.1", 23))
	p.answered("a1", "ICMP error", "the TTL ends at the router", func() frame { f := t.a1.tcp(t.b2.ip, 22); f.ttl = 1; return f }())
	p.dropped("ACL", "a closed port behind the router", t.a1.tcp(t.b2.ip, 80))
	p.answered("a1", "ICMP error", "a neighbour that does not answer", t.a1.tcp("10.202.0.99", 22))
	p.answered("a1", "TCP", "the metadata service", t.a1.tcp("169.254.169.254", 80))
}
