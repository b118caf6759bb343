package symbolic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/bdd"
	"ovs-offline/pkg/openflow"
)

// Place is a bridge of a node.
type Place struct{ Node, Bridge string }

// Port is a port of a bridge.
type Port struct {
	Number int
	Tag    int // the VLAN of packets without a tag, 0 for none
}

// Link is where a port leads: packets end there, or enter a port of another bridge.
type Link struct {
	End      string            // "" where packets go on
	Where    map[string]string // only packets get there whose fields, as they are then, have these values
	To       Place
	Port     int               // of To
	Metadata map[string]string // of the packets that enter, by the fields; nil keeps the marks of patch ports
	Kept     []string          // fields that a tunnel carries
	May      bool              // not all of the packets get there
}

// Fabric knows bridges and their ports.
type Fabric interface {
	// Bridge returns the flows and groups of a bridge.
	Bridge(ctx context.Context, at Place) (Bridge, error)
	Ports(at Place) []Port
	// Links returns where a port leads. constant returns the value of a field of the packets, if all have the same. An error says why it is not
	// known where the packets go.
	Links(at Place, port int, constant func(field string) (uint64, bool)) ([]Link, error)
}

// Reached are the packets that get to an end: those that do for certain, and those that may.
type Reached struct{ Must, May bdd.Set }

// Machine executes the tables of bridges on sets of packets of a family. It is not for concurrent use.
type Machine struct {
	space    *bdd.Space
	layout   *layout
	tables   map[Place]*bridgeTables
	fabric   Fabric
	hasher   *hasher
	start    bdd.Set
	reserved int // the number of bits that packets have

	queue    []job
	seen     map[seen]Reached
	ends     map[string]Reached
	unknown  map[string]bdd.Set // packets of which it is not known where they go, by the reason
	noted    map[string]bool    // what was assumed
	sent     map[sentKey]*Sent
	tracking Tracking
	zones    map[zoneOf][]*entry // the connections that Tracking has, of the zones that packets were tracked in
	tooDeep  bdd.Set             // packets that Open vSwitch drops with all copies, because they are resubmitted too often
	ctx      context.Context
}

type job struct {
	at      Place
	table   int
	packets *packets
}

// seen are packets at the beginning of a table.
type seen struct {
	at    Place
	table int
	sum   sum
}

// moreFields is the number of bits of fields that bridges may have besides the usual ones.
const moreFields = 1024

// mostNodes bounds the memory of a machine to some 500 MB.
const mostNodes = 16_000_000

// Bridge holds the flows and groups of a bridge.
type Bridge struct {
	Flows  iter.Seq2[openflow.Flow, error]
	Groups []openflow.Entry
	Ports  map[string]int // the numbers of ports by their names
}

// New returns a machine for the packets of a family. It compiles a bridge when packets enter it. Packets have the headers of the family, and other
// fields that tunnels carry to them.
func New(family Family, fabric Fabric, carried ...Field) (*Machine, error) {
	m := &Machine{layout: newLayout(family, carried), tables: map[Place]*bridgeTables{}, fabric: fabric, hasher: newHasher(), zones: map[zoneOf][]*entry{}}
	for _, name := range append(sorting(), "ct_state", "ct_zone", "ct_mark", "ct_label", "ct_nw_src", "ct_nw_dst", "ct_ipv6_src", "ct_ipv6_dst", "ct_nw_proto", "ct_tp_src", "ct_tp_dst", "pkt_mark", "tun_id", "tun_src", "tun_dst", "tun_ipv6_src", "tun_ipv6_dst") {
		if _, err := m.layout.span(name); err != nil {
			return nil, err
		}
	}
	m.space = bdd.New(m.size(), mostNodes)
	m.reserved = m.layout.size + moreFields
	m.start = m.layout.valid(m.space)
	return m, nil
}

// Space returns the space of the sets of packets.
func (m *Machine) Space() *bdd.Space { return m.space }

// Fields returns the fields that the packets of the family have.
func (m *Machine) Fields() []Field { return m.layout.inputs }

// Family returns the family of the packets.
func (m *Machine) Family() Family { return m.layout.family }

// Packet returns the set of the one packet with the values of its fields, in which the others are 0. Fields that the family does not have are left
// out.
func (m *Machine) Packet(fields map[string]string) (bdd.Set, error) {
	bits := make([]bdd.Literal, m.size())
	for i := range bits {
		bits[i].Bit = i
	}
	for name, value := range fields {
		list, err := m.layout.criterion(name, value)
		if err != nil {
			return bdd.None, err
		}
		for _, l := range list {
			if l.at < len(bits) {
				bits[l.at].Value = l.value
			}
		}
	}
	return m.space.And(m.start, m.space.Cube(bits)), nil
}

// Vary returns the packets that have any value in a field, and the values of a set in the others.
func (m *Machine) Vary(set bdd.Set, f Field) bdd.Set {
	for bit := f.First; bit < f.First+f.Bits; bit++ {
		with, without := m.space.Fix(set, bit)
		set = m.space.Or(with, without)
	}
	return m.space.And(set, m.start)
}

// Valid returns the packets that there are.
func (m *Machine) Valid() bdd.Set { return m.start }

// Where returns the packets in which a field has a value, as a match has it.
func (m *Machine) Where(field, value string) (bdd.Set, error) {
	list, err := m.layout.criterion(field, value)
	if err != nil {
		return bdd.None, err
	}
	set := bdd.All
	for _, l := range list {
		if l.at >= m.size() {
			return bdd.None, fmt.Errorf("packets of %s have no field %s", m.layout.family, field)
		}
		bit := m.space.Bit(l.at)
		if !l.value {
			bit = m.space.Not(bit)
		}
		set = m.space.And(set, bit)
	}
	return set, nil
}

// size returns the number of bits of the headers.
func (m *Machine) size() int {
	last := m.layout.inputs[len(m.layout.inputs)-1]
	return last.First + last.Bits
}

// Result is what becomes of the packets that entered a bridge.
type Result struct {
	Ends    map[string]Reached
	Unknown map[string]bdd.Set // by why it is not known where they go
	Assumed []string
	Sent    []Sent // in which forms they get to the ends, and their other effects
}

// Run follows packets that enter a bridge by a port.
func (m *Machine) Run(ctx context.Context, at Place, port int, set bdd.Set) (*Result, error) {
	m.tooDeep = bdd.None
	m.ctx, m.seen, m.ends, m.unknown, m.noted = ctx, map[seen]Reached{}, map[string]Reached{}, map[string]bdd.Set{}, map[string]bool{}
	m.sent = map[sentKey]*Sent{}
	p := &packets{set: m.space.And(set, m.start), bits: make([]bdd.Set, m.reserved)}
	for bit := range m.size() {
		p.bits[bit] = m.space.Bit(bit)
	}
	m.enter(at, port, p)
	for len(m.queue) > 0 {
		next := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		if fresh := m.fresh(next); fresh != nil {
			m.resubmit(point{at: next.at, table: -1}, next.table, fresh)
		}
		if err := m.err(); err != nil {
			m.queue = nil
			return nil, err
		}
	}
	for end, reached := range m.ends {
		m.ends[end] = Reached{m.space.Without(reached.Must, m.tooDeep), reached.May}
	}
	return &Result{m.ends, m.unknown, slices.Sorted(maps.Keys(m.noted)), m.sentOf()}, m.err()
}

func (m *Machine) err() error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	return m.space.Err()
}

// enter lets packets into a bridge by a port.
func (m *Machine) enter(at Place, port int, p *packets) {
	p.setNumber(m.layout.spans["in_port"], uint64(port))
	if err := m.compile(at); err != nil {
		m.lose(p, err.Error())
		return
	}
	m.queue = append(m.queue, job{at, 0, p})
}

// compile compiles a bridge, once.
func (m *Machine) compile(at Place) error {
	if m.tables[at] != nil {
		return nil
	}
	bridge, err := m.fabric.Bridge(m.ctx, at)
	if err == nil {
		m.tables[at], err = newTables(m.layout, bridge)
	}
	if err == nil && m.layout.size > m.reserved {
		err = errors.New("its flows have too many fields")
	}
	if err != nil {
		return fmt.Errorf("bridge %s of node %s: %w", at.Bridge, at.Node, err)
	}
	return nil
}

// fresh returns the packets of a job that were not followed from there before, nil for none.
func (m *Machine) fresh(j job) *packets {
	may := j.packets.may
	j.packets.may = false
	key := seen{j.at, j.table, m.hasher.sum(j.packets)}
	j.packets.may = may
	before := m.seen[key]
	known := before.Must
	if may {
		known = before.May
	}
	left := m.space.Without(j.packets.set, known)
	if left == bdd.None {
		return nil
	}
	before.May = m.space.Or(before.May, left)
	if !may {
		before.Must = m.space.Or(before.Must, left)
	}
	m.seen[key] = before
	return j.packets.within(left)
}

func (m *Machine) lose(p *packets, why string) {
	m.unknown[why] = m.space.Or(m.unknown[why], p.set)
}

func (m *Machine) arrive(p *packets, end string) {
	reached := m.ends[end]
	reached.May = m.space.Or(reached.May, p.set)
	if !p.may {
		reached.Must = m.space.Or(reached.Must, p.set)
	}
	m.ends[end] = reached
}

// point is where packets are: in a table of a bridge, after some resubmits within each other.
type point struct {
	at    Place
	table int
	depth int
}

// deepest is the number of resubmits within each other, to the same table or an earlier one, above which Open vSwitch drops a packet and all copies
// of it (MAX_DEPTH in ofproto-dpif-xlate.c).
const deepest = 64

// mostResubmits is the number of resubmits of a packet in one pass above which Open vSwitch does the same (MAX_RESUBMITS there).
const mostResubmits = deepest * deepest

// resubmit looks packets up in a table, runs the actions of the flows that they match, and returns the packets as they are then.
func (m *Machine) resubmit(from point, table int, p *packets) (after []*packets) {
	if p.resubmits++; from.depth >= deepest || p.resubmits > mostResubmits {
		m.tooDeep = m.space.Or(m.tooDeep, p.set)
		return nil
	}
	to := point{from.at, table, from.depth}
	if table <= from.table {
		to.depth++
	}
	rest := m.lookup(from.at, table, p, func(f *flow, matched bdd.Set) {
		after = append(after, m.run(to, f.actions, []*packets{m.sorted(p.within(matched), f)})...)
	})
	if rest != bdd.None {
		after = append(after, p.within(rest))
	}
	return m.joined(after)
}

// run runs actions on packets, and returns what they are then.
func (m *Machine) run(at point, actions []action, list []*packets) []*packets {
	var ended []*packets // whose TTL has expired: the rest of these actions is not for them (xlate_actions)
	for _, a := range actions {
		var after []*packets
		for _, p := range list {
			if m.err() != nil {
				return nil
			}
			if _, ok := a.(decTTL); ok {
				ended = append(ended, m.decrement(p)...)
			}
			after = append(after, m.act(at, a, p)...)
		}
		if list = m.joined(after); len(list) == 0 {
			break
		}
	}
	return append(list, ended...)
}

// act runs one action.
func (m *Machine) act(at point, a action, p *packets) []*packets {
	switch a := a.(type) {
	case assign:
		p.assign(a)
	case move:
		p.copy(a.to, p.of(a.from))
	case push:
		p.stack = append(p.stack, p.of(a.field))
	case pop:
		if last := len(p.stack) - 1; last >= 0 {
			p.copy(a.field, p.stack[last])
			p.stack = p.stack[:last]
		}
	case pushVLAN:
		return m.pushVLAN(p)
	case popVLAN:
		p.setNumber(m.layout.spans["vlan_tci"], 0)
	case decTTL: // run decrements
	case resubmit:
		return m.doResubmit(at, a, p)
	case output:
		m.output(at.at, a.port, p)
	case outputTo:
		m.outputTo(at.at, a.field, p)
	case toGroup:
		m.group(at, a.id, p)
	case clone:
		p.countFrom(m.run(at, a.actions, []*packets{p.within(p.set)}))
	case checkSize:
		p.bits[a.to] = bdd.None
		m.noted["frames that fit everywhere"] = true
	case effect:
		m.effect(p, a.text)
	case notify:
		m.effect(p, a.text)
		m.noted["what ovn-controller sends itself is not followed"] = true
		if a.ends {
			return nil
		}
	case ctClear:
		p.held = nil
		for _, name := range []string{"ct_state", "ct_zone", "ct_mark", "ct_label"} {
			p.setNumber(m.layout.spans[name], 0)
		}
	case track:
		return slices.DeleteFunc(m.track(at, a, p), func(q *packets) bool { return q.set == bdd.None })
	case unknown:
		m.lose(p, a.text)
		return nil
	}
	if p.set == bdd.None {
		return nil
	}
	return []*packets{p}
}

func (m *Machine) doResubmit(at point, a resubmit, p *packets) []*packets {
	table := at.table
	if a.table >= 0 {
		table = a.table
	}
	inPort := m.layout.spans["in_port"]
	before := p.of(inPort)
	if a.port >= 0 {
		p.setNumber(inPort, uint64(a.port))
	}
	after := m.resubmit(at, table, p)
	if a.port >= 0 {
		for _, q := range after {
			q.copy(inPort, before)
		}
	}
	return after
}

// pushVLAN adds a tag to packets without one.
func (m *Machine) pushVLAN(p *packets) []*packets {
	tci := m.layout.spans["vlan_tci"]
	tag := p.bits[tci.part(tagged, 1).at]
	if double := m.space.And(p.set, tag); double != bdd.None {
		m.lose(p.within(double), "packets with a VLAN tag get another one")
	}
	p.set = m.space.Without(p.set, tag)
	p.setNumber(tci, 1<<tagged)
	if p.set == bdd.None {
		return nil
	}
	return []*packets{p}
}

// decrement decrements the TTL of packets, and returns those whose TTL expires, which p has no longer.
func (m *Machine) decrement(p *packets) (expired []*packets) {
	ttl := m.layout.spans["nw_ttl"]
	high := bdd.None // a bit above the lowest one is set
	for _, bit := range p.bits[ttl.at : ttl.at+ttl.width-1] {
		high = m.space.Or(high, bit)
	}
	if last := m.space.Without(p.set, high); last != bdd.None {
		expired = append(expired, p.within(last))
		m.effect(expired[0], "its TTL expires")
	}
	p.set = m.space.And(p.set, high)
	borrow := bdd.All
	for at := ttl.at + ttl.width - 1; at >= ttl.at; at-- {
		bit := p.bits[at]
		p.bits[at] = m.space.Choose(borrow, m.space.Not(bit), bit)
		borrow = m.space.Without(borrow, bit)
	}
	return expired
}

// group runs the buckets of a group on copies.
func (m *Machine) group(at point, id uint32, p *packets) {
	at.depth++
	found := m.tables[at.at].groups[id]
	if found == nil {
		m.lose(p, fmt.Sprintf("group %d of bridge %s of node %s is not known", id, at.at.Bridge, at.at.Node))
		return
	}
	if found.choice != "" {
		m.effect(p, found.choice)
	}
	for _, bucket := range found.buckets {
		q := p.within(p.set)
		q.may = q.may || found.kind != "all" && len(found.buckets) > 1
		p.countFrom(m.run(at, bucket, []*packets{q}))
	}
}

// outputTo sends packets to the port whose number is in a field.
func (m *Machine) outputTo(at Place, field span, p *packets) {
	if port, ok := p.constant(field); ok {
		m.output(at, int(port), p)
		return
	}
	m.lose(p, "the packet's own bits choose the port by which it leaves")
}

// output sends packets to a port.
func (m *Machine) output(at Place, port int, p *packets) {
	in, ok := p.constant(m.layout.spans["in_port"])
	switch {
	case !ok:
		m.lose(p, "the packet's own bits choose the port by which it entered")
	case port == portController:
		m.effect(p, "goes to the controller")
		m.noted["what ovn-controller sends itself is not followed"] = true
	case port == portInPort:
		m.leave(at, int(in), p)
	case port == portNormal || port == portFlood || port == portAll:
		m.flood(at, int(in), port != portNormal, p)
	case port != int(in):
		m.leave(at, port, p)
	}
}

// flood sends packets to the ports of a bridge but one. By the action NORMAL they may get to any of these that has their VLAN.
func (m *Machine) flood(at Place, in int, all bool, p *packets) {
	tci := m.layout.spans["vlan_tci"]
	ports := m.fabric.Ports(at)
	vlan := p.of(tci.part(0, tagged))
	if i := slices.IndexFunc(ports, func(port Port) bool { return port.Number == in }); i >= 0 && ports[i].Tag != 0 {
		p = p.within(m.space.Without(p.set, p.bits[tci.part(tagged, 1).at])) // access ports take no tags
		p.setNumber(tci, 1<<tagged|uint64(ports[i].Tag))
		vlan = p.of(tci.part(0, tagged))
	}
	for _, port := range ports {
		if port.Number == in {
			continue
		}
		q := p.within(p.set)
		q.may = q.may || !all
		if port.Tag != 0 {
			for i, bit := range vlan {
				if port.Tag>>(tagged-1-i)&1 == 0 {
					bit = m.space.Not(bit)
				}
				q.set = m.space.And(q.set, bit)
			}
			q.setNumber(tci, 0)
		}
		if q.set != bdd.None {
			m.leave(at, port.Number, q)
		}
	}
}

// leave lets packets out of a port.
func (m *Machine) leave(at Place, port int, p *packets) {
	links, err := m.fabric.Links(at, port, func(field string) (uint64, bool) {
		s, err := m.layout.span(field)
		if err != nil || s.at+s.width > len(p.bits) {
			return 0, false
		}
		return p.constant(s)
	})
	if err != nil {
		m.lose(p, err.Error())
		return
	}
	for _, link := range links {
		q := p.within(p.set)
		q.may = q.may || link.May
		if link.End != "" {
			if q.set = m.where(q, link.Where); q.set != bdd.None {
				m.arrive(q, link.End)
				m.send(q, link.End, false, link.Kept...)
			}
			continue
		}
		m.carry(q, link)
		m.enter(link.To, link.Port, q)
	}
}

// where returns the packets whose fields have certain values at this point.
func (m *Machine) where(p *packets, fields map[string]string) bdd.Set {
	set := p.set
	for name, value := range fields {
		list, err := m.layout.criterion(name, value)
		if err != nil {
			return bdd.None
		}
		set = m.space.And(set, m.match(p, list))
	}
	return set
}

// carry changes the metadata of packets as a port does that leads to another bridge.
func (m *Machine) carry(p *packets, link Link) {
	kept := map[string][]bdd.Set{}
	for name, s := range m.layout.spans {
		if slices.Contains(link.Kept, name) || link.Metadata == nil && name == "pkt_mark" || slices.ContainsFunc(link.Kept, func(k string) bool {
			prefix, any := strings.CutSuffix(k, "*")
			return any && strings.HasPrefix(name, prefix)
		}) {
			kept[name] = p.of(s)
		}
	}
	clear(p.bits[m.size():])
	p.stack, p.held = nil, nil
	for name, bits := range kept {
		p.copy(m.layout.spans[name], bits)
	}
	for name, value := range link.Metadata {
		if list, err := m.layout.literals(name, value); err == nil {
			p.assign(list)
		}
	}
}
