package conntrack

import (
	"fmt"
	"slices"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/odp"
)

// Node is the conntrack of one node.
type Node struct {
	Name string
	// Table holds the recorded connections, nil for none.
	Table *Table
	// Userspace selects the rules of the userspace datapath instead of Linux's.
	Userspace bool
	// Assumed is the state of packets for which no connection is known, in place of the one
	// that conntrack finds; nil for none.
	Assumed *Flags
}

// Subject is a packet with what conntrack knows of it.
type Subject struct {
	Packet flow.Packet
	ID     uint16 // of an ICMP query, 0 if not known
	// Quoted is the packet inside an ICMP error, nil if it is not known.
	Quoted *Subject
	Meta   Meta
	// Headless reports that the header of the packet's protocol is short or absent.
	Headless bool
	// First is the first fragment of the datagram that the packet is a fragment of, nil if
	// it is not known. Fragment is the kind of fragment that the packet was before conntrack
	// reassembled it, "" for another packet.
	First    *flow.Packet
	Fragment string
	// unsure is why an address or a port of the packet is not known, "" if they are: NAT
	// chose it.
	unsure string
}

// Meta is what the last ct action left in the packet's metadata.
type Meta struct {
	Tracked bool
	Flags   Flags
	Zone    uint16
	Mark    uint32
	Label   string
	Orig    Tuple // of the connection; not valid for an invalid packet
	entry   *Entry
	reply   bool
	known   bool // the zone has tracked the packet before
}

// Result is what a ct action did.
type Result struct {
	Subject Subject
	State   *State
	// Entry is the connection, nil for none; OfQuestion reports that an earlier packet or
	// stage of the question committed or changed it.
	Entry      *Entry
	OfQuestion bool
	// Uncertain is what can't be predicted of the packet, "" for nothing, and Assumed what
	// the recorded table does not show.
	Uncertain, Assumed string
}

// Execute does what a ct action does to a packet on a node. The error is a reason for
// which the outcome can't be known.
func (n Node) Execute(s *State, in Subject, ct odp.Track) (Result, error) {
	r := Result{Subject: in, State: s}
	r.Subject.Packet = in.Packet.Clone()
	if err := r.Subject.reassemble(); err != nil {
		return r, err
	}
	err := n.execute(&r, ct)
	if n.Userspace {
		r.Subject.Refragment()
	}
	return r, err
}

// execute does what a ct action does to a packet that is no fragment.
func (n Node) execute(r *Result, ct odp.Track) error {
	if ct.Helper != "" {
		return fmt.Errorf("conntrack's helper %q reads the payload, which is not known", ct.Helper)
	}
	tuple, ok := TupleOf(r.Subject.Packet, r.Subject.ID)
	switch {
	case !ok, r.Subject.Headless:
		r.invalid(ct.Zone)
		return nil
	case tuple.IsError():
		return n.related(r, ct)
	}
	f, reply, ok := n.lookup(r, ct, tuple)
	if why := r.State.mayHold(n.Name, ct.Zone, tuple); !ok && why != "" {
		return fmt.Errorf("the packet may belong to a connection whose translated port is not known: %s", why)
	}
	if ok && ct.Force && reply {
		r.State = r.State.with(n.Name, f, true)
		ok = false
	}
	switch {
	case ok:
		return n.existing(r, f, reply, ct)
	case n.Assumed != nil:
		return n.assume(r, tuple, ct)
	}
	n.new(r, tuple, ct)
	return nil
}

// invalid marks a packet that conntrack can't assign to a connection.
func (r *Result) invalid(zone uint16) {
	r.Subject.Meta = Meta{Tracked: true, Flags: Flags{Inv: true}, Zone: zone}
}

// lookup returns the connection of a tuple and its direction. A packet that the same
// zone has tracked keeps its connection, and is marked as known.
func (n Node) lookup(r *Result, ct odp.Track, tuple Tuple) (e *Entry, reply, ok bool) {
	m := &r.Subject.Meta
	if m.holds(ct.Zone, tuple) {
		m.known = true
		return m.entry, m.reply, true
	}
	*m = Meta{}
	f, ok, decided := r.State.find(n.Name, ct.Zone, tuple)
	if decided {
		r.OfQuestion = ok
		return f.entry, f.reply, ok
	}
	f, several, ok := n.Table.find(ct.Zone, tuple)
	if several {
		r.Uncertain = "several recorded ICMP connections match, and the packet's identifier is not known"
	}
	return f.entry, f.reply, ok
}

// holds reports whether the metadata still belongs to the packet: the datapath forgets
// the connection when a later action changes the addresses or ports.
func (m Meta) holds(zone uint16, tuple Tuple) bool {
	if !m.Tracked || m.Zone != zone || m.entry == nil {
		return false
	}
	from, to := m.entry.directions(m.reply)
	return sameID(tuple, found{m.entry, m.reply}) && (keyOf(zone, tuple) == keyOf(zone, from) || keyOf(zone, tuple) == keyOf(zone, to))
}

// directions returns the tuple of a packet before and after the connection's address
// translation.
func (e *Entry) directions(reply bool) (from, to Tuple) {
	if reply {
		return e.Reply, e.Orig.reverse()
	}
	return e.Orig, e.Reply.reverse()
}

// existing handles a packet of a connection.
func (n Node) existing(r *Result, e *Entry, reply bool, ct odp.Track) error {
	if e.assumed && ct.NAT != nil {
		return errNotRecorded
	}
	flags, restart := n.stateOf(r.Subject.Packet, e, reply)
	if !e.Known && !reply && flags.Est && e.Orig.Proto != flow.TCP {
		r.Assumed = fmt.Sprintf("the recorded connection of zone %d had been answered: the userspace datapath does not show it", ct.Zone)
	}
	if restart {
		r.State = r.State.with(n.Name, e, true)
		tuple, _ := TupleOf(r.Subject.Packet, r.Subject.ID)
		n.new(r, tuple, ct)
		return nil
	}
	if r.Subject.Meta.known {
		flags = r.Subject.Meta.Flags
	}
	if flags.Inv {
		r.invalid(ct.Zone)
		return nil
	}
	changed := *e
	if ct.Commit {
		changed.Mark = maskedMark(e.Mark, ct.Mark)
		changed.Label = maskedLabel(e.Label, ct.Label)
	}
	if reply {
		changed.SeenReply, changed.Known = true, true
	}
	if changed != *e {
		r.State = r.State.with(n.Name, &changed, false)
		e = &changed
	}
	r.Entry = e
	meta := Meta{Tracked: true, Flags: flags, Zone: ct.Zone, Mark: e.Mark, Label: e.Label, Orig: e.Orig, entry: e, reply: reply}
	// Linux translates a packet of a connection that nothing has answered only as it commits
	// the connection (net/netfilter/nf_nat_ovs.c, nf_ct_nat).
	translates := n.Userspace || !flags.New || ct.Commit
	if ct.NAT != nil && translates && !flags.SNAT && !flags.DNAT {
		r.Subject.translate(e, reply, &meta.Flags)
		if !reply {
			r.doubt(e)
		}
	}
	r.Subject.Meta = meta
	return nil
}

// doubt marks a packet to which a connection gives an address or port that is not known.
func (r *Result) doubt(e *Entry) {
	if e.unsure != "" {
		r.Uncertain, r.Subject.unsure = e.unsure, e.unsure
	}
}

// stateOf returns the state of a packet of a connection. restart reports that the
// packet begins a new connection in place of one that has ended.
func (n Node) stateOf(p flow.Packet, e *Entry, reply bool) (f Flags, restart bool) {
	syn, ack, _, _, known := tcpFlags(p.Get("tcp_flags"))
	opens := e.Orig.Proto == flow.TCP && known && syn && !ack
	if opens && hasEnded(e.OrigState) && hasEnded(e.ReplyState) {
		return Flags{}, true
	}
	f.Rel = e.Related
	switch {
	case n.Userspace && e.Orig.Proto == flow.TCP && known && tcpNonsense(p.Get("tcp_flags")):
		return Flags{Inv: true}, false
	case reply:
		f.Est, f.Rpl = true, true
	case n.Userspace && e.Orig.Proto == flow.TCP:
		opening := opens && (e.OrigState == "" || e.OrigState == "SYN_SENT")
		f.Est, f.New = !opening, opening
	case e.SeenReply, !e.Known:
		f.Est = true
	default:
		f.New = true
	}
	if f.Rel && !f.Rpl {
		f.New = false
	}
	return f, false
}

// hasEnded reports whether a SYN may begin a new connection in a TCP state.
func hasEnded(state string) bool {
	return slices.Contains([]string{"TIME_WAIT", "CLOSED", "CLOSE", "FIN_WAIT_2", "LAST_ACK"}, state)
}

// tcpNonsense reports whether no TCP sends such flags (lib/conntrack-tcp.c,
// tcp_invalid_flags).
func tcpNonsense(text string) bool {
	syn, ack, rst, fin, _ := tcpFlags(text)
	return syn && (rst || fin) || !syn && !ack && !rst || !ack && fin
}

// new handles a packet without a connection.
func (n Node) new(r *Result, tuple Tuple, ct odp.Track) {
	r.Entry = nil
	if !n.mayBegin(r.Subject.Packet, tuple) {
		r.invalid(ct.Zone)
		return
	}
	meta := Meta{Tracked: true, Flags: Flags{New: true}, Zone: ct.Zone, Orig: tuple}
	if ct.Commit {
		e := &Entry{Zone: ct.Zone, Orig: tuple, Reply: tuple.reverse(), Known: true, Mark: maskedMark(0, ct.Mark), Label: maskedLabel("", ct.Label), unsure: r.Subject.unsure}
		if tuple.Proto == flow.TCP {
			e.OrigState = "SYN_SENT"
		}
		if ct.NAT != nil {
			n.choose(r.State, e, *ct.NAT)
			r.doubt(e)
			r.Subject.translate(e, false, &meta.Flags)
			meta.Flags.SNAT = meta.Flags.SNAT || ct.NAT.Src
			meta.Flags.DNAT = meta.Flags.DNAT || ct.NAT.Dst
		}
		r.State = r.State.with(n.Name, e, false)
		r.Entry, r.OfQuestion = e, true
		meta.Mark, meta.Label, meta.entry = e.Mark, e.Label, e
	}
	r.Subject.Meta = meta
}

// mayBegin reports whether a packet can begin a connection.
func (n Node) mayBegin(p flow.Packet, t Tuple) bool {
	if t.isICMP() {
		return t.isQuery()
	}
	if t.Proto != flow.TCP {
		return true
	}
	syn, ack, rst, fin, known := tcpFlags(p.Get("tcp_flags"))
	switch {
	case !known:
		return true // taken as a SYN
	case syn && ack:
		return false
	case n.Userspace:
		return !tcpNonsense(p.Get("tcp_flags"))
	}
	return syn && !rst && !fin || ack && !rst && !fin
}

// choose sets the translated addresses and ports of a new connection.
func (n Node) choose(s *State, e *Entry, nat odp.NAT) {
	addr, port := &e.Reply.Dst, &e.Reply.DstPort
	if nat.Dst {
		addr, port = &e.Reply.Src, &e.Reply.SrcPort
	}
	if nat.Min.IsValid() {
		*addr = nat.Min
		if !nat.IsFixed() {
			e.unsure = fmt.Sprintf("NAT chooses one of the addresses %v to %v by a hash", nat.Min, nat.Max)
		}
	}
	if nat.MinPort != 0 && !e.Orig.isICMP() && (*port < nat.MinPort || *port > nat.MaxPort || n.Userspace) {
		*port = nat.MinPort
		if nat.MinPort != nat.MaxPort {
			e.unsure = fmt.Sprintf("NAT chooses one of the ports %d to %d", nat.MinPort, nat.MaxPort)
		}
	}
	if n.inUse(s, e) {
		e.unsure = fmt.Sprintf("another connection of zone %d uses the translated addresses and ports: NAT chooses another port", e.Zone)
	}
}

// inUse reports whether the answers to a new connection would belong to another one.
func (n Node) inUse(s *State, e *Entry) bool {
	if f, ok, decided := s.find(n.Name, e.Zone, e.Reply); decided {
		return ok && f.entry.Orig != e.Orig
	}
	if e.Reply.isICMP() && e.Reply.ID == 0 {
		return false
	}
	_, _, ok := n.Table.find(e.Zone, e.Reply)
	return ok
}

// translate does the connection's address translation for one direction.
func (s *Subject) translate(e *Entry, reply bool, f *Flags) {
	from, to := e.directions(reply)
	f.SNAT = f.SNAT || from.Src != to.Src || !from.isICMP() && from.SrcPort != to.SrcPort
	f.DNAT = f.DNAT || from.Dst != to.Dst || !from.isICMP() && from.DstPort != to.DstPort
	s.write(to)
}

// write gives the packet the addresses and ports of a tuple.
func (s *Subject) write(t Tuple) {
	src, dst, ok := s.Packet.Addresses()
	if ok && (src != t.Src || dst != t.Dst) {
		s.Packet.SetAddresses(t.Src, t.Dst)
	}
	if t.isICMP() {
		if t.ID != 0 && s.ID != 0 {
			s.ID = t.ID
		}
		return
	}
	for name, port := range map[string]uint16{"tp_src": t.SrcPort, "tp_dst": t.DstPort} {
		if n, ok := s.Packet.Number(name); ok && n != uint64(port) {
			s.Packet.Set(name, fmt.Sprint(port))
		}
	}
}
