package symbolic

import (
	"net/netip"
	"strings"

	"ovs-offline/internal/bdd"
)

// The flags of ct_state (lib/packets.h of Open vSwitch).
const (
	flagNew  = 1 << 0
	flagEst  = 1 << 1
	flagRpl  = 1 << 3
	flagInv  = 1 << 4
	flagTrk  = 1 << 5
	flagSNAT = 1 << 6
	flagDNAT = 1 << 7
)

// track sends packets through conntrack, and queues those that are recirculated. Each of them opens a connection, but for ICMP messages that ask
// for nothing: those are invalid, or replies of a connection.
func (m *Machine) track(at point, t track, p *packets) {
	open := m.space.Without(p.set, m.messages(p))
	if opening := p.within(open); open != bdd.None {
		m.trackAs(at, t, opening, flagTrk|flagNew)
	}
	if others := m.space.Without(p.set, open); others != bdd.None {
		for _, state := range []uint64{flagTrk | flagInv, flagTrk | flagEst | flagRpl} {
			q := p.within(others)
			q.may = true
			m.trackAs(at, t, q, state)
		}
	}
	if t.table < 0 && t.nat != nil && t.nat.address != "" {
		m.translate(p, t.nat)
	}
}

// messages returns the packets that are messages of ICMP and no echo requests.
func (m *Machine) messages(p *packets) bdd.Set {
	protocol, request := "1", "8"
	if m.layout.family == IPv6 {
		protocol, request = "58", "128"
	}
	if m.layout.family == ARP {
		return bdd.None
	}
	return m.space.Without(m.where(p, map[string]string{"nw_proto": protocol}), m.where(p, map[string]string{"icmp_type": request}))
}

// trackAs queues packets that have a state of connections.
func (m *Machine) trackAs(at point, t track, q *packets, state uint64) {
	for _, original := range [][2]string{{"ct_nw_src", "nw_src"}, {"ct_nw_dst", "nw_dst"}, {"ct_ipv6_src", "ipv6_src"}, {"ct_ipv6_dst", "ipv6_dst"},
		{"ct_nw_proto", "nw_proto"}, {"ct_tp_src", "tp_src"}, {"ct_tp_dst", "tp_dst"}} {
		if from, ok := m.layout.spans[original[1]]; ok {
			q.copy(m.layout.spans[original[0]], q.of(from))
		}
	}
	if t.nat != nil && t.nat.address != "" && state&flagNew != 0 {
		flag, why := m.translate(q, t.nat)
		if why != "" {
			m.lose(q, why)
			return
		}
		state |= flag
	}
	q.setNumber(m.layout.spans["ct_state"], state)
	q.setNumber(m.layout.spans["ct_mark"], 0)
	q.setNumber(m.layout.spans["ct_label"], 0)
	for _, changed := range m.run(at, t.exec, []*packets{q}) {
		if t.table >= 0 {
			changed.stack, changed.resubmits = nil, 0
			m.queue = append(m.queue, job{at.at, t.table, changed})
		}
	}
}

// translate changes the addresses of packets, and returns the flag of ct_state for that, or why it can't.
func (m *Machine) translate(p *packets, t *nat) (flag uint64, why string) {
	address, err := netip.ParseAddr(t.address)
	if err != nil || strings.Contains(t.ports, "-") && t.destination {
		return 0, "conntrack translates the packet to one of several addresses or ports: nat to " + t.address
	}
	is6 := address.Is6()
	if is6 != (m.layout.family == IPv6) {
		p.set = bdd.None
		return 0, ""
	}
	side, port, flag := "src", "tp_src", uint64(flagSNAT)
	if t.destination {
		side, port, flag = "dst", "tp_dst", flagDNAT
	}
	field := "nw_" + side
	if is6 {
		field = "ipv6_" + side
	}
	if list, err := m.layout.literals(field, address.String()); err == nil {
		p.assign(list)
	}
	if t.ports != "" && !strings.Contains(t.ports, "-") {
		if list, err := m.layout.literals(port, t.ports); err == nil {
			p.assign(list)
		}
	}
	return flag, ""
}
