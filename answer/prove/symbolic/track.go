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
	flagRel  = 1 << 2
	flagRpl  = 1 << 3
	flagInv  = 1 << 4
	flagTrk  = 1 << 5
	flagSNAT = 1 << 6
	flagDNAT = 1 << 7
)

// track sends packets through conntrack, and queues those that are recirculated. Each of them opens a connection, but for ICMP messages that ask
// for nothing: those are invalid, or replies of a connection. Tracking may say something else. It returns the packets that
// go on without a lookup in a table.
func (m *Machine) track(at point, t track, p *packets) []*packets {
	if m.tracking.State != nil && !t.commit {
		m.trackAs(at, t, p.within(p.set), stateBits(*m.tracking.State))
		return []*packets{p}
	}
	if m.tracking.Recorded != nil {
		return m.trackRecorded(at, t, p)
	}
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
	return []*packets{p}
}

// messages returns the packets that are messages of ICMP and ask for no answer.
func (m *Machine) messages(p *packets) bdd.Set {
	protocol, requests := "1", []string{"8", "13", "15", "17"}
	if m.layout.family == IPv6 {
		protocol, requests = "58", []string{"128"}
	}
	if m.layout.family == ARP {
		return bdd.None
	}
	set := m.where(p, map[string]string{"nw_proto": protocol})
	for _, request := range requests {
		set = m.space.Without(set, m.where(p, map[string]string{"icmp_type": request}))
	}
	return set
}

// trackAs queues packets that have a state of connections.
func (m *Machine) trackAs(at point, t track, q *packets, state uint64) {
	m.setOriginal(q, false)
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
	q.held = nil
	m.recirculate(at, t, q)
}

// setOriginal writes the original direction of the connection into packets that have its addresses.
func (m *Machine) setOriginal(q *packets, reply bool) {
	for _, field := range []string{"nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "nw_proto", "tp_src", "tp_dst"} {
		from, ok := m.layout.spans[field]
		if !ok {
			continue
		}
		if other, isSrc := strings.CutSuffix(field, "_src"); reply && isSrc {
			from = m.layout.spans[other+"_dst"]
		} else if other, isDst := strings.CutSuffix(field, "_dst"); reply && isDst {
			from = m.layout.spans[other+"_src"]
		}
		q.copy(m.layout.spans["ct_"+field], q.of(from))
	}
}

// recirculate changes the connection of packets, and queues those that go on in a table.
func (m *Machine) recirculate(at point, t track, q *packets) {
	q.copy(m.layout.spans["ct_zone"], q.of(t.zoneField))
	for _, changed := range m.run(at, t.exec, []*packets{q}) {
		m.send(changed, t.effect, true, "ct_*")
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
