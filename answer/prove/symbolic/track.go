package symbolic

import (
	"net/netip"
	"strings"

	"ovs-offline/internal/bdd"
)

// The flags of ct_state (lib/packets.h of Open vSwitch).
const (
	flagNew  = 1 << 0
	flagTrk  = 1 << 5
	flagSNAT = 1 << 6
	flagDNAT = 1 << 7
)

// track sends packets through conntrack, for which each of them opens a connection, and queues those that are recirculated.
func (m *Machine) track(at point, t track, p *packets) {
	q := p.within(p.set)
	for _, original := range [][2]string{{"ct_nw_src", "nw_src"}, {"ct_nw_dst", "nw_dst"}, {"ct_ipv6_src", "ipv6_src"}, {"ct_ipv6_dst", "ipv6_dst"},
		{"ct_nw_proto", "nw_proto"}, {"ct_tp_src", "tp_src"}, {"ct_tp_dst", "tp_dst"}} {
		if from, ok := m.layout.spans[original[1]]; ok {
			q.copy(m.layout.spans[original[0]], q.of(from))
		}
	}
	state := uint64(flagTrk | flagNew)
	if t.nat != nil && t.nat.address != "" {
		flag, why := m.translate(q, t.nat)
		if why != "" {
			m.lose(p, why)
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
	if t.table < 0 && t.nat != nil && t.nat.address != "" {
		m.translate(p, t.nat)
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
