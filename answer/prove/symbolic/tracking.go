package symbolic

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/bdd"
	flowtext "ovs-offline/pkg/openflow/flow"
)

// Tracking is what conntrack finds for packets. By the zero value, each packet opens a connection.
type Tracking struct {
	// State is the state that each lookup finds, nil for none: of connections without mark, label and translated addresses.
	State *conntrack.Flags
	// Recorded returns the conntrack of a node with the connections that it knows; nil where none are used.
	Recorded func(node string) conntrack.Tracker
}

// Track sets what conntrack finds for the packets that Run follows from now on.
func (m *Machine) Track(tracking Tracking) { m.tracking = tracking }

// mostConnections bounds the connections of a zone that packets are compared with.
const mostConnections = 2000

// zoneOf is a conntrack zone of a node.
type zoneOf struct {
	node string
	zone uint16
}

// entry is a connection of a zone in one of its directions.
type entry struct {
	*conntrack.Connection
	reply    bool
	tuple    []literal
	outcomes []outcome
}

// outcome is what conntrack makes of packets with some TCP flags.
type outcome struct {
	flags     bdd.Set // the headers with these flags, All for other protocols
	state     conntrack.Flags
	isRestart bool // they open a new connection in place of one that has ended
}

// held is the connection to which packets belong whose addresses conntrack has translated.
type held struct {
	zone  uint16
	entry *entry
	state conntrack.Flags
}

// alike are packets of connections that conntrack treats alike. The entry is nil if the addresses of the packets say all of its connection.
type alike struct {
	state conntrack.Flags
	reply bool
	mark  uint32
	label string
	entry *entry
}

// entries returns the connections of a zone, both directions of each.
func (m *Machine) entries(of zoneOf, tracker conntrack.Tracker) ([]*entry, error) {
	if list, ok := m.zones[of]; ok {
		return list, nil
	}
	list := []*entry{}
	for c := range tracker.Table.InZone(of.zone) {
		if c.Orig.Src.Is6() != (m.layout.family == IPv6) {
			continue
		}
		if len(list) >= 2*mostConnections {
			return nil, fmt.Errorf("zone %d of node %s has more than %d connections", of.zone, of.node, mostConnections)
		}
		if c.Unlabelled {
			return nil, fmt.Errorf("the labels of the connections of zone %d of node %s were not recorded", of.zone, of.node)
		}
		for _, reply := range []bool{false, true} {
			from, _ := c.Directions(reply)
			tuple, err := m.tuple(from)
			if err != nil {
				return nil, err
			}
			outcomes, err := m.outcomes(func(packet flowtext.Packet) outcome {
				state, restart := tracker.StateOf(packet, c, reply)
				return outcome{state: state, isRestart: restart}
			}, c.Orig.Proto)
			if err != nil {
				return nil, err
			}
			list = append(list, &entry{c, reply, tuple, outcomes})
		}
	}
	m.zones[of] = list
	return list, nil
}

// tuple returns the bits that packets of a direction of a connection have.
func (m *Machine) tuple(of conntrack.Tuple) (all []literal, err error) {
	src, dst := m.addressFields()
	for _, f := range [][2]string{{"nw_proto", strconv.Itoa(int(of.Proto))}, {src, of.Src.String()}, {dst, of.Dst.String()},
		{"tp_src", strconv.Itoa(int(of.SrcPort))}, {"tp_dst", strconv.Itoa(int(of.DstPort))}} {
		list, err := m.layout.literals(f[0], f[1])
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b literal) int { return cmp.Compare(a.at, b.at) })
	return all, nil
}

func (m *Machine) addressFields() (src, dst string) {
	if m.layout.family == IPv6 {
		return "ipv6_src", "ipv6_dst"
	}
	return "nw_src", "nw_dst"
}

// outcomes asks what conntrack makes of packets with each combination of the six TCP flags that every TCP has.
func (m *Machine) outcomes(of func(flowtext.Packet) outcome, protocol uint8) (list []outcome, err error) {
	const combinations = 64
	for bits := range combinations {
		var packet flowtext.Packet
		if protocol != flowtext.TCP {
			made := of(packet)
			made.flags = bdd.All
			return []outcome{made}, nil
		}
		value := bits
		if bits == 0 {
			value = combinations // a further one, so that it is not taken as unknown
		}
		packet.Set("tcp_flags", fmt.Sprintf("%#x", value))
		set, err := m.Where("tcp_flags", fmt.Sprintf("%#x/%#x", bits, combinations-1))
		if err != nil {
			return nil, err
		}
		made := of(packet)
		i := slices.IndexFunc(list, func(o outcome) bool { return o.state == made.state && o.isRestart == made.isRestart })
		if i < 0 {
			i, list = len(list), append(list, made)
		}
		list[i].flags = m.space.Or(list[i].flags, set)
	}
	return list, nil
}

// trackRecorded sends packets through a conntrack that knows connections, and returns those that go on without a lookup in a table.
func (m *Machine) trackRecorded(at point, t track, p *packets) []*packets {
	zone, ok := t.zoneOf(p)
	if !ok {
		m.lose(p, "the packet's own bits choose the zone of conntrack")
		return nil
	}
	tracker := m.tracking.Recorded(at.at.Node)
	if tracker.Table == nil {
		m.noted[fmt.Sprintf("no connections were recorded on node %s: each is taken as new", at.at.Node)] = true
	}
	list, err := m.entries(zoneOf{at.at.Node, zone}, tracker)
	if err != nil {
		m.lose(p, err.Error())
		return nil
	}
	if t.table < 0 && t.nat != nil {
		return m.translateHere(t, p, zone, list)
	}
	rest := m.space.Without(p.set, m.trackHeld(at, t, p, zone))
	fresh, unsure := bdd.None, bdd.None // packets that open a connection, and those that may belong to one with another ICMP identifier
	sets, order := map[alike]bdd.Set{}, []alike(nil)
	for _, e := range list {
		matched := m.space.And(rest, m.match(p, e.tuple))
		if matched == bdd.None {
			continue
		}
		if e.isICMP() {
			unsure = m.space.Or(unsure, matched)
		} else {
			rest = m.space.Without(rest, matched)
		}
		for _, o := range e.outcomes {
			part := m.space.And(matched, o.flags)
			if o.isRestart || e.reply && t.force {
				fresh = m.space.Or(fresh, part)
				continue
			}
			key := alike{state: o.state, reply: e.reply, mark: e.Mark, label: e.Label, entry: e}
			if e.isPlain() && !(e.reply && e.isICMP()) {
				key.entry = nil
			}
			if sets[key] == bdd.None {
				order = append(order, key)
			}
			sets[key] = m.space.Or(sets[key], part)
		}
	}
	for _, key := range order {
		if q := p.within(sets[key]); q.set != bdd.None {
			q.may = q.may || m.space.And(q.set, unsure) != bdd.None
			m.trackKnown(at, t, q, key, zone, tracker.Userspace)
		}
	}
	m.trackUnknown(at, t, p, m.space.Or(rest, fresh), unsure, tracker)
	return []*packets{p}
}

// translateHere translates packets that go on without a lookup in a table: as their connection does, or as they open one.
func (m *Machine) translateHere(t track, p *packets, zone uint16, list []*entry) (after []*packets) {
	if p.held != nil && p.held.zone == zone {
		return []*packets{p}
	}
	rest := p.set
	for _, e := range list {
		known := m.space.And(rest, m.match(p, e.tuple))
		if known == bdd.None {
			continue
		}
		q := p.within(known)
		if e.isICMP() {
			q.may = true // it may have another identifier
		} else {
			rest = m.space.Without(rest, known)
		}
		if err := m.translateBy(q, e, &conntrack.Flags{}); err != nil {
			m.lose(q, err.Error())
			continue
		}
		after = append(after, q)
	}
	q := p.within(rest)
	if t.nat.address != "" {
		m.translate(q, t.nat)
	}
	return append(after, q)
}

// trackHeld sends packets through the zone that has translated them before, and returns them.
func (m *Machine) trackHeld(at point, t track, p *packets, zone uint16) bdd.Set {
	h := p.held
	if h == nil || h.zone != zone {
		return bdd.None
	}
	from, to := h.entry.Directions(h.entry.reply)
	set := bdd.None
	for _, of := range []conntrack.Tuple{from, to} {
		tuple, err := m.tuple(of)
		if err != nil {
			m.lose(p, err.Error())
			return p.set
		}
		set = m.space.Or(set, m.match(p, tuple))
	}
	if set = m.space.And(set, p.set); set != bdd.None {
		m.trackKnown(at, t, p.within(set), alike{state: h.state, reply: h.entry.reply, mark: h.entry.Mark, label: h.entry.Label, entry: h.entry}, zone, false)
	}
	return set
}

// trackUnknown sends packets through a conntrack that knows no connection for them: they open one, or are invalid.
func (m *Machine) trackUnknown(at point, t track, p *packets, set, unsure bdd.Set, tracker conntrack.Tracker) {
	tcp := m.where(p, map[string]string{"nw_proto": strconv.Itoa(flowtext.TCP)})
	invalid := m.space.And(set, m.messages(p))
	outcomes, err := m.outcomes(func(packet flowtext.Packet) outcome {
		return outcome{state: conntrack.Flags{Inv: !tracker.MayBegin(packet, conntrack.Tuple{Proto: flowtext.TCP})}}
	}, flowtext.TCP)
	if err != nil {
		m.lose(p, err.Error())
		return
	}
	for _, o := range outcomes {
		if o.state.Inv {
			invalid = m.space.Or(invalid, m.space.And(m.space.And(set, tcp), o.flags))
		}
	}
	for _, part := range []struct {
		set   bdd.Set
		state uint64
	}{{invalid, flagTrk | flagInv}, {m.space.Without(set, invalid), flagTrk | flagNew}} {
		for _, may := range []bool{false, true} {
			q := p.within(m.space.Without(part.set, unsure))
			if may {
				q = p.within(m.space.And(part.set, unsure))
			}
			if q.may = q.may || may; q.set != bdd.None {
				m.trackAs(at, t, q, part.state)
			}
		}
	}
}

// trackKnown queues packets of connections that conntrack knows.
func (m *Machine) trackKnown(at point, t track, q *packets, of alike, zone uint16, userspace bool) {
	state := of.state
	if state.Inv {
		m.trackAs(at, t, q, flagTrk|flagInv)
		return
	}
	m.setOriginal(q, of.reply)
	if of.entry != nil {
		if err := m.setOriginalOf(q, of.entry.Orig); err != nil {
			m.lose(q, err.Error())
			return
		}
		// Linux translates a packet of a connection that nothing has answered only as it commits the connection.
		if t.nat != nil && (userspace || !state.New || t.commit) && !state.SNAT && !state.DNAT {
			if err := m.translateBy(q, of.entry, &state); err != nil {
				m.lose(q, err.Error())
				return
			}
			q.held = &held{zone, of.entry, state}
		}
	}
	q.setNumber(m.layout.spans["ct_state"], stateBits(state))
	q.setNumber(m.layout.spans["ct_mark"], uint64(of.mark))
	label, err := m.layout.literals("ct_label", cmp.Or(of.label, "0"))
	if err != nil {
		m.lose(q, err.Error())
		return
	}
	q.assign(label)
	m.recirculate(at, t, q)
}

// translateBy changes the addresses of packets as a connection does.
func (m *Machine) translateBy(q *packets, e *entry, state *conntrack.Flags) error {
	from, to := e.Directions(e.reply)
	state.SNAT = from.Src != to.Src || !e.isICMP() && from.SrcPort != to.SrcPort
	state.DNAT = from.Dst != to.Dst || !e.isICMP() && from.DstPort != to.DstPort
	tuple, err := m.tuple(to)
	q.assign(tuple)
	return err
}

// setOriginalOf writes the original direction of a connection into packets.
func (m *Machine) setOriginalOf(q *packets, of conntrack.Tuple) error {
	src, dst := m.addressFields()
	for field, value := range map[string]string{"ct_" + src: of.Src.String(), "ct_" + dst: of.Dst.String(), "ct_nw_proto": strconv.Itoa(int(of.Proto)),
		"ct_tp_src": strconv.Itoa(int(of.SrcPort)), "ct_tp_dst": strconv.Itoa(int(of.DstPort))} {
		list, err := m.layout.literals(field, value)
		if err != nil {
			return err
		}
		q.assign(list)
	}
	return nil
}

// stateBits returns a state as the bits of ct_state.
func stateBits(state conntrack.Flags) uint64 {
	bits := uint64(flagTrk)
	for flag, set := range map[uint64]bool{flagNew: state.New, flagEst: state.Est, flagRel: state.Rel, flagRpl: state.Rpl, flagInv: state.Inv, flagSNAT: state.SNAT, flagDNAT: state.DNAT} {
		if set {
			bits |= flag
		}
	}
	return bits
}

func (e *entry) isICMP() bool {
	return e.Orig.Proto == flowtext.ICMP || e.Orig.Proto == flowtext.ICMPv6
}

// isPlain reports whether conntrack translates no address of the connection.
func (e *entry) isPlain() bool {
	ends := func(t conntrack.Tuple) (src, dst netip.AddrPort) {
		if e.isICMP() {
			return netip.AddrPortFrom(t.Src, 0), netip.AddrPortFrom(t.Dst, 0)
		}
		return netip.AddrPortFrom(t.Src, t.SrcPort), netip.AddrPortFrom(t.Dst, t.DstPort)
	}
	src, dst := ends(e.Orig)
	back, forth := ends(e.Reply)
	return src == forth && dst == back
}

// zoneOf returns the zone of a ct action for packets; ok is false if it depends on their bits.
func (t track) zoneOf(p *packets) (zone uint16, ok bool) {
	if t.zoneField.width == 0 {
		return t.zone, true
	}
	value, ok := p.constant(t.zoneField)
	return uint16(value), ok
}
