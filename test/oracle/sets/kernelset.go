package sets

import (
	"fmt"
	"slices"
)

// room holds the end points of the set kernel.
type room struct {
	a1, b1, c2, d1, e1 host // of network one, with a security group
	s1, s2             host // of network two
	out, out9          host // the provider's router, and a host beside it
	out6               host // the provider's router for IPv6
}

// Addresses of the router and its NAT.
const (
	outer        = "172.24.4.10" // the router's, for SNAT
	outer6       = "2001:db8:4::10"
	outerMAC     = "0a:58:00:04:00:10"
	fipB1        = "172.24.4.21"
	fipA1        = "172.24.4.22" // distributed
	fipA1MAC     = "0a:58:00:04:00:22"
	forwarded    = "172.24.4.30" // DNAT without SNAT, to s1
	outsideVIP   = "172.24.4.100"
	sticky       = "10.96.0.10"
	sticky6      = "fd00:96::10"
	stickyOne    = "10.96.0.11"
	loose        = "10.96.0.12"
	hairpin      = "10.96.0.13"
	etherLength  = 14
	pingTimeout6 = "2001:db8:77::9"
)

func newRoom() room {
	vm := func(name, network, part string) host {
		nets := map[string][4]string{
			"one": {"0a:58:00:10:00:", "192.168.10.", "fd00:10::", "0a:58:00:10:00:01"},
			"two": {"0a:58:00:20:00:", "192.168.20.", "fd00:20::", "0a:58:00:20:00:01"},
		}
		n := nets[network]
		return host{label: name, mac: n[0] + part, ip: n[1] + part, ip6: n[2] + part, gw: n[3]}
	}
	return room{
		a1: vm("a1", "one", "11"), b1: vm("b1", "one", "12"), c2: vm("c2", "one", "13"), d1: vm("d1", "one", "14"), e1: vm("e1", "one", "15"),
		s1: vm("s1", "two", "11"), s2: vm("s2", "two", "12"),
		out:  host{label: "ext0", mac: "02:00:00:00:00:fe", ip: "172.24.4.1", ip6: "2001:db8:4::1", gw: outerMAC},
		out9: host{label: "ext0", mac: "02:00:00:00:00:09", ip: "172.24.4.9", ip6: "2001:db8:4::9", gw: outerMAC},
		out6: host{label: "ext0", mac: "02:00:00:00:00:f6", ip6: "2001:db8:4::1", gw: outerMAC},
	}
}

// ofKernel is the plan of the set kernel. Of many packets nothing is planned: the kernel says
// what becomes of them.
func ofKernel(p *plan) {
	r := newRoom()
	r.meet(p)
	r.before(p)
	r.affinity(p)
	r.nat(p)
	r.fragments(p)
	r.sizes(p, append(r.tunnels(1500),
		way{"to an interface of 1500 bytes", r.a1.ping(r.e1.ip, r.e1.mac), 1500},
		way{"to an interface of 1442 bytes", r.a1.ping(r.d1.ip, r.d1.mac), 1442},
		way{"from an interface of 1442 bytes", r.d1.ping(r.a1.ip, r.a1.mac), 1442},
		way{"to an interface of 1442 bytes of the other node", r.a1.ping(r.c2.ip, r.c2.mac), 1442},
		way{"from an interface of 1442 bytes to the other node", r.c2.ping(r.a1.ip, r.a1.mac), 1442},
		way{"to outside", r.c2.ping(anywhere), 1400},
		way{"to outside from the other node", r.e1.ping(anywhere), 1400},
		way{"IPv6 to outside", r.c2.ping(pingTimeout6), 1400},
		way{"to a floating IP", r.out.ping(fipB1), 1400},
		way{"to network two", r.d1.ping(r.s1.ip), 1300},
		way{"from network two", r.s1.ping(r.d1.ip), 1300},
	))
}

// ofJumbo is the plan of the set kernel-9000, the same nodes over an underlay of 9000 bytes.
func ofJumbo(p *plan) {
	r := newRoom()
	r.meet(p)
	r.sizes(p, r.tunnels(9000))
}

// meet makes the bridges outside know where the hosts are.
func (r room) meet(p *plan) {
	p.tell("the provider's router asks for the gateway", r.out.arp(outer), "ext0")
	p.tell("a host outside asks for the gateway", r.out9.arp(outer), "ext0")
	p.tell("the provider's router asks for the gateway's IPv6 address", r.out6.neighbour(outer6), "ext0")
	p.tell("the provider's router asks for the distributed floating IP", r.out.arp(fipA1), "ext0")
}

// exchange is a connection between a client and one of the labels to.
type exchange struct {
	*connection
	shows, client string
	to            []string
}

// before opens connections of which the capture has the conntrack entries and the flows
// of session affinity.
func (r room) before(p *plan) {
	members := []string{"s1", "s2"}
	var opened []exchange
	// The first packet of a client to a sticky VIP only makes the switch learn.
	first := func(shows string, request frame) {
		p.tell(shows+": the first request", request)
	}
	open := func(shows string, request frame, client string, to ...string) *connection {
		c := p.connect(shows, request, to...)
		for _, s := range []*step{c.request, c.acknowledgement} {
			if s != nil && len(to) > 1 {
				s.chosen()
			}
		}
		opened = append(opened, exchange{c, shows, client, to})
		return c
	}
	colliding := func(h host) frame { return asked(h.tcp("172.24.4.9", 443), 31000) }
	first("TCP through a sticky VIP", asked(r.a1.tcp(sticky, 80), 41000))
	first("UDP through a sticky VIP", asked(r.a1.udp(sticky, 53), 41001))
	first("TCP through a sticky VIP of IPv6", asked(r.a1.tcp(sticky6, 80), 41002))
	first("TCP through a sticky VIP from outside", asked(r.out9.tcp(outsideVIP, 80), 41004))
	open("TCP through a sticky VIP", asked(r.a1.tcp(sticky, 80), 41000), "a1", members...)
	open("UDP through a sticky VIP", asked(r.a1.udp(sticky, 53), 41001), "a1", members...)
	open("TCP through a sticky VIP of IPv6", asked(r.a1.tcp(sticky6, 80), 41002), "a1", members...)
	open("TCP through a VIP without affinity", asked(r.a1.tcp(loose, 80), 41003), "a1", members...)
	open("TCP through a sticky VIP from outside", asked(r.out9.tcp(outsideVIP, 80), 41004), "ext0", members...)
	open("SNAT", colliding(r.c2), "c2", "ext0")
	open("SNAT with a source port that was taken", colliding(r.d1), "d1", "ext0")
	udp := open("UDP through SNAT", asked(r.c2.udp("172.24.4.9", 123), 31001), "c2", "ext0")
	fip := open("UDP to a floating IP", r.out.udp(fipB1, 53), "ext0", "b1")
	open("TCP to a distributed floating IP", r.out.tcp(fipA1, 443, fipA1MAC), "ext0", "a1")
	open("TCP through DNAT", r.out.tcp(forwarded, 8080), "ext0", "s1")
	open("TCP through a hairpin", r.a1.tcp(hairpin, 80), "a1", "a1")
	p.volley(func() {
		for _, e := range opened {
			s := p.add(Delivered, e.shows+": a further packet of the client", e.forth(), e.to...).established()
			if len(e.to) > 1 {
				s.chosen()
			}
		}
	})
	p.volley(func() {
		for _, e := range opened {
			p.delivered(e.client, e.shows+": an answer", e.back()).established().answers = e.request
		}
	})
	p.delivered("c2", "the peer of UDP through SNAT reports its port as unreachable", udp.failure(3, 3, "")).established()
	p.delivered("c2", "a router on the way of UDP through SNAT reports an error", udp.failure(11, 0, "203.0.113.77")).established()
	p.delivered("ext0", "a VM behind a floating IP reports its port as unreachable", fip.failure(3, 3, "")).established()
}

// unplanned adds a packet of which nothing is planned.
func (p *plan) unplanned(shows string, f frame, after ...*step) *step {
	s := p.add("", shows, f)
	s.follows = after
	return s
}

// reply adds the answer of whichever end point got a packet of this list.
func (p *plan) reply(request *step) *step {
	return p.unplanned(request.Shows+": the answer", frame{later: func() (frame, error) {
		seen, label, err := request.seen()
		if err != nil {
			return frame{}, err
		}
		back := seen.reversed(label)
		if back.proto == "tcp" {
			back.flags, back.seq, back.ack = "SA", 5000, seen.seq+1
		}
		back.size = request.frame.size
		return back, nil
	}}, append(slices.Clone(request.follows), request)...)
}

// affinity asks sticky VIPs again, from clients that they know and from others.
func (r room) affinity(p *plan) {
	p.volley(func() { r.knownClients(p) })
	r.newClients(p)
	p.volley(func() {
		for port := uint16(44000); port < 44004; port++ {
			p.unplanned(fmt.Sprintf("a VIP without affinity: TCP, port %d", port), asked(r.d1.tcp(loose, 80), port)).Choice = true
			p.unplanned(fmt.Sprintf("a VIP without affinity: UDP, port %d", port), asked(r.d1.udp(loose, 53), port)).Choice = true
		}
	})
}

func (r room) knownClients(p *plan) {
	for _, way := range []struct {
		shows  string
		packet func(h host) frame
		client host
		ports  []uint16
	}{
		{"TCP, a client that the VIP knows", func(h host) frame { return h.tcp(sticky, 80) }, r.a1, []uint16{41000, 42000, 42001, 42002}},
		{"UDP, a client that the VIP knows", func(h host) frame { return h.udp(sticky, 53) }, r.a1, []uint16{41001, 42003, 42004, 42005}},
		{"IPv6 TCP, a client that the VIP knows", func(h host) frame { return h.tcp(sticky6, 80) }, r.a1, []uint16{41002, 42006, 42007}},
		{"TCP from outside, a client that the VIP knows", func(h host) frame { return h.tcp(outsideVIP, 80) }, r.out9, []uint16{42008, 42009, 42010}},
	} {
		for _, port := range way.ports {
			p.unplanned(fmt.Sprintf("a sticky VIP: %s, port %d", way.shows, port), asked(way.packet(way.client), port))
		}
	}
}

// newClients sends each client's first packet, the same again, two from other ports, and the
// answer to the second.
func (r room) newClients(p *plan) {
	ways := []struct {
		shows  string
		packet func(h host) frame
		client host
	}{
		{"TCP, a new client", func(h host) frame { return h.tcp(sticky, 80) }, r.d1},
		{"TCP, a new client on the other node", func(h host) frame { return h.tcp(sticky, 80) }, r.c2},
		{"UDP, a new client", func(h host) frame { return h.udp(sticky, 53) }, r.d1},
		{"IPv6 TCP, a new client", func(h host) frame { return h.tcp(sticky6, 80) }, r.d1},
		{"IPv6 UDP, a new client", func(h host) frame { return h.udp(sticky6, 53) }, r.d1},
		{"TCP from outside, a new client", func(h host) frame { return h.tcp(outsideVIP, 80) }, r.out},
		{"TCP with one member, a new client", func(h host) frame { return h.tcp(stickyOne, 80) }, r.d1},
	}
	sent := make([][]*step, len(ways))
	for n, other := range []uint16{0, 0, 1, 2} {
		p.volley(func() {
			for i, way := range ways {
				port := uint16(43000+10*i) + other // its own, so that no connection of another list has it
				s := p.unplanned(fmt.Sprintf("a sticky VIP: %s, packet %d with port %d", way.shows, n+1, port), asked(way.packet(way.client), port), slices.Clone(sent[i])...)
				s.Choice = n < 2 // a hash chose for the first packet, which is lost; the second shows the choice
				sent[i] = append(sent[i], s)
			}
		})
	}
	p.volley(func() {
		for i := range ways {
			p.reply(sent[i][1])
		}
	})
}

func (r room) nat(p *plan) {
	var requests []*step
	ways := []struct {
		shows string
		f     frame
	}{
		{"SNAT of TCP from the gateway's node", r.c2.tcp(anywhere, 443)},
		{"SNAT of TCP from the other node", r.d1.tcp(anywhere, 443)},
		{"SNAT with the source port of a known connection", asked(r.e1.tcp("172.24.4.9", 443), 31000)},
		{"SNAT of UDP with the source port of a known connection", asked(r.e1.udp("172.24.4.9", 123), 31001)},
		{"SNAT of a ping", r.d1.ping(anywhere)},
		{"SNAT of IPv6", r.d1.tcp(pingTimeout6, 443)},
		{"out through a floating IP", r.b1.tcp(anywhere, 443)},
		{"out through a distributed floating IP", r.a1.udp(anywhere, 123)},
		{"in through a floating IP", r.out.tcp(fipB1, 443)},
		{"in through a floating IP, a port that is closed", r.out.tcp(fipB1, 22)},
		{"in through a distributed floating IP", r.out.ping(fipA1, fipA1MAC)},
		{"in through DNAT", r.out.tcp(forwarded, 8081)},
		{"in through DNAT, UDP", r.out.udp(forwarded, 53)},
		{"from a VM to a floating IP of its network", r.c2.tcp(fipB1, 443)},
		{"from the other node to a floating IP", r.d1.tcp(fipB1, 443)},
		{"from a floating IP to another", r.a1.udp(fipB1, 53)},
		{"from a VM to its own floating IP", r.b1.tcp(fipB1, 443)},
		{"from network two to a floating IP", r.s1.tcp(fipB1, 443)},
		{"from network two to a distributed floating IP", r.s2.udp(fipA1, 53)},
		{"from a VM to DNAT", r.c2.tcp(forwarded, 8080)},
		{"a hairpin", r.a1.tcp(hairpin, 80)},
		{"the hairpin's VIP from another VM", r.d1.tcp(hairpin, 80)},
	}
	p.volley(func() {
		for _, way := range ways {
			requests = append(requests, p.unplanned(way.shows, way.f))
		}
	})
	p.answer(requests)
}

// answer adds the answers of whichever end points got the packets of this list.
func (p *plan) answer(requests []*step) {
	p.volley(func() {
		for _, request := range requests {
			p.reply(request)
		}
	})
}

// fragments sends datagrams in fragments, in order and out of order.
func (r room) fragments(p *plan) {
	for _, way := range []struct {
		shows string
		f     frame
	}{
		{"between nodes", r.a1.udp(r.b1.ip, 5005, r.b1.mac)},
		{"to a closed port", r.a1.udp(r.b1.ip, 7, r.b1.mac)},
		{"on one node", r.e1.udp(r.a1.ip, 5005, r.a1.mac)},
		{"through the router", r.e1.udp(r.s1.ip, 5005)},
		{"through the router to the other node", r.e1.udp(r.s2.ip, 5005)},
		{"through a VIP", r.e1.udp(loose, 53)},
		{"through a sticky VIP", r.a1.udp(sticky, 53)},
		{"through SNAT", r.e1.udp(anywhere, 5005)},
		{"to a floating IP", r.out.udp(fipB1, 5005)},
	} {
		p.volley(func() { r.cuts(p, way.shows, way.f) })
	}
	ping := []int{1376, 1376, 1256} // with 4000 bytes of data
	p.volley(func() {
		p.datagram("a ping of 4000 bytes between nodes", r.a1.ping(r.b1.ip, r.b1.mac), ping, []int{0, 1, 2})
		p.datagram("a ping of 4000 bytes through SNAT", r.e1.ping(anywhere), ping, []int{0, 1, 2})
		p.datagram("a ping of 4000 bytes to a floating IP", r.out.ping(fipB1), ping, []int{0, 1, 2})
		p.datagram("a ping of 4000 bytes of the router", r.a1.ping("192.168.10.1"), ping, []int{0, 1, 2})
	})
}

// cuts sends a datagram as fragments. Open vSwitch matches a fragment, the first one too, as if
// its ports were 0 (frag mode normal, ovs-ofctl(8)). So the flow before conntrack that writes
// the VIP and its port into registers, which the lookup of a session matches, does not match:
// a hash chooses the member of a sticky VIP again for each datagram.
func (r room) cuts(p *plan, shows string, f frame) {
	for _, cut := range []struct {
		shows string
		sizes []int // of the fragments' data; the last takes what is left
		order []int
	}{
		{"in 2 fragments", []int{1000, 400}, []int{0, 1}},
		{"in 2 fragments, the last first", []int{1000, 400}, []int{1, 0}},
		{"in 3 fragments", []int{800, 800, 300}, []int{0, 1, 2}},
		{"in 3 fragments out of order", []int{800, 800, 300}, []int{2, 0, 1}},
	} {
		for _, s := range p.datagram("UDP "+shows+" "+cut.shows, f, cut.sizes, cut.order) {
			s.Choice = f.dip == loose || f.dip == sticky
		}
	}
}

// way is a ping, and the size of the largest IP packet that the smallest MTU on its way takes.
type way struct {
	shows string
	f     frame
	limit int
}

// tunnels are the ways between nodes over an underlay with an MTU.
func (r room) tunnels(mtu int) []way {
	const headers = 8 + 8 + 8 + 20 + etherLength // geneve, its option, UDP, IPv4, and the inner Ethernet
	return []way{
		{"between nodes", r.a1.ping(r.b1.ip, r.b1.mac), mtu - headers},
		{"between nodes, back", r.b1.ping(r.a1.ip, r.a1.mac), mtu - headers},
		{"IPv6 between nodes", r.a1.ping(r.b1.ip6, r.b1.mac), mtu - headers},
		{"IPv6 between nodes, back", r.b1.ping(r.a1.ip6, r.a1.mac), mtu - headers},
	}
}

// sizes sends pings of 40 sizes around the limit of each way, and answers each that arrives.
func (r room) sizes(p *plan, ways []way) {
	for _, way := range ways {
		var pings []*step
		p.volley(func() {
			for more := -20; more < 20; more++ {
				f := way.f
				f.size = way.limit + more
				pings = append(pings, p.unplanned(fmt.Sprintf("%d bytes %s", f.size, way.shows), f))
				if more < -1 || more > 1 || f.is6() {
					continue
				}
				f.df = true
				pings = append(pings, p.unplanned(fmt.Sprintf("%d bytes %s, not to be fragmented", f.size, way.shows), f))
			}
		})
		p.answer(pings)
	}
}
