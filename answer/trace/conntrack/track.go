package conntrack

import (
	"fmt"
	"slices"

	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
)

// Tracker is the conntrack of one node.
type Tracker struct {
	Name string
	// Table holds the recorded connections, nil for none.
	Table *Table
	// Userspace selects the rules of the userspace datapath instead of Linux's.
	Userspace bool
	// Assumed is the state of packets for which no connection is known, in place of the one
	// that conntrack finds; nil for none.
	Assumed *Flags
}

// Subject is a packet with what conntrack needs of it, and its metadata.
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
	Tracked    bool
	Flags      Flags
	Zone       uint16
	Mark       uint32
	Label      string
	Unlabelled bool  // Label is not known
	Orig       Tuple // of the connection; not valid for an invalid packet
	connection *Connection
	reply      bool
	known      bool // the zone has tracked the packet before
}

// Result is what a ct action did.
type Result struct {
	Subject Subject
	Changes *Changes
	// Connection is the connection, nil for none; OfQuestion reports that an earlier packet or
	// stage of the question committed or changed it.
	Connection *Connection
	OfQuestion bool
	// Uncertain is what can't be predicted of the packet, "" for nothing.
	Uncertain string
	// Assumed lists what neither the recorded table nor the packet shows.
	Assumed []string
}

// Execute does what a ct action does to a packet on a node. It returns an error, with the
// reason, if the outcome can't be known.
func (t Tracker) Execute(changes *Changes, in Subject, ct odp.Track) (Result, error) {
	r := Result{Subject: in, Changes: changes}
	r.Subject.Packet = in.Packet.Clone()
	if err := r.Subject.reassemble(); err != nil {
		return r, err
	}
	err := t.execute(&r, ct)
	if t.Userspace {
		r.Subject.Refragment()
	}
	return r, err
}

// execute does what a ct action does to a packet that is not a fragment.
func (t Tracker) execute(r *Result, ct odp.Track) error {
	if ct.Helper != "" {
		return fmt.Errorf("conntrack's helper %q reads the payload, which is not known", ct.Helper)
	}
	tuple, ok := TupleOf(r.Subject.Packet, r.Subject.ID)
	switch {
	case !ok, r.Subject.Headless:
		r.markInvalid(ct.Zone)
		return nil
	case tuple.IsError():
		return t.handleError(r, ct)
	}
	match, reply, ok := t.lookup(r, ct, tuple)
	if why := r.Changes.mayHold(t.Name, ct.Zone, tuple); !ok && why != "" {
		return fmt.Errorf("the packet may belong to a connection whose translated port is not known: %s", why)
	}
	if ok && ct.Force && reply {
		r.Changes = r.Changes.add(t.Name, match, true)
		ok = false
	}
	switch {
	case ok:
		return t.handleKnown(r, match, reply, ct)
	case t.Assumed != nil:
		return t.handleAssumed(r, tuple, ct)
	}
	t.handleNew(r, tuple, ct)
	return nil
}

// markInvalid marks a packet that conntrack can't assign to a connection.
func (r *Result) markInvalid(zone uint16) {
	r.Subject.Meta = Meta{Tracked: true, Flags: Flags{Inv: true}, Zone: zone}
}

// lookup returns the connection of a tuple and its direction. A packet that the same
// zone has tracked keeps its connection, and is marked as known.
func (t Tracker) lookup(r *Result, ct odp.Track, tuple Tuple) (connection *Connection, reply, ok bool) {
	meta := &r.Subject.Meta
	if meta.holds(ct.Zone, tuple) {
		meta.known = true
		return meta.connection, meta.reply, true
	}
	*meta = Meta{}
	match, ok, decided := r.Changes.find(t.Name, ct.Zone, tuple)
	if decided {
		r.OfQuestion = ok
		return match.connection, match.reply, ok
	}
	match, several, ok := t.Table.find(ct.Zone, tuple)
	switch id := match.id(); {
	case several:
		r.Uncertain = "several recorded ICMP connections match, and the packet's identifier is not known"
	case ok && tuple.isICMP() && tuple.ID == 0 && id != 0:
		r.Assumed = append(r.Assumed, fmt.Sprintf("the packet has the ICMP identifier %d, as the recorded connection between its addresses", id))
	}
	return match.connection, match.reply, ok
}

// holds reports whether the metadata still belongs to the packet: the datapath forgets
// the connection when a later action changes the addresses or ports.
func (m Meta) holds(zone uint16, tuple Tuple) bool {
	if !m.Tracked || m.Zone != zone || m.connection == nil {
		return false
	}
	from, to := m.connection.Directions(m.reply)
	return sameID(tuple, found{m.connection, m.reply}) && (keyOf(zone, tuple) == keyOf(zone, from) || keyOf(zone, tuple) == keyOf(zone, to))
}

// Directions returns the tuple of a packet before and after the connection's address
// translation.
func (c *Connection) Directions(reply bool) (from, to Tuple) {
	if reply {
		return c.Reply, c.Orig.reverse()
	}
	return c.Orig, c.Reply.reverse()
}

// handleKnown handles a packet of a connection.
func (t Tracker) handleKnown(r *Result, connection *Connection, reply bool, ct odp.Track) error {
	if connection.assumed && ct.NAT != nil {
		return errNotRecorded
	}
	flags, restart := t.StateOf(r.Subject.Packet, connection, reply)
	if !connection.Known && !reply && flags.Est && connection.Orig.Proto != flow.TCP {
		r.Assumed = append(r.Assumed, fmt.Sprintf("the recorded connection of zone %d had been answered: the userspace datapath does not show it", ct.Zone))
	}
	if restart {
		r.Changes = r.Changes.add(t.Name, connection, true)
		tuple, _ := TupleOf(r.Subject.Packet, r.Subject.ID)
		t.handleNew(r, tuple, ct)
		return nil
	}
	if r.Subject.Meta.known {
		flags = r.Subject.Meta.Flags
	}
	if flags.Inv {
		r.markInvalid(ct.Zone)
		return nil
	}
	changed := *connection
	if ct.Commit {
		changed.Mark = maskedMark(connection.Mark, ct.Mark)
		changed.Label = maskedLabel(connection.Label, ct.Label)
	}
	if reply {
		changed.SeenReply, changed.Known = true, true
	}
	if changed != *connection {
		r.Changes = r.Changes.add(t.Name, &changed, false)
		connection = &changed
	}
	r.Connection = connection
	meta := Meta{Tracked: true, Flags: flags, Zone: ct.Zone, Mark: connection.Mark, Label: connection.Label, Unlabelled: connection.Unlabelled, Orig: connection.Orig, connection: connection, reply: reply}
	// Linux translates a packet of a connection that nothing has answered only as it commits
	// the connection (net/netfilter/nf_nat_ovs.c, nf_ct_nat).
	translates := t.Userspace || !flags.New || ct.Commit
	if ct.NAT != nil && translates && !flags.SNAT && !flags.DNAT {
		r.Subject.translate(connection, reply, &meta.Flags)
		if !reply {
			r.markUnsure(connection)
		}
	}
	r.Subject.Meta = meta
	return nil
}

// markUnsure marks a packet to which a connection gives an address or port that is not known.
func (r *Result) markUnsure(connection *Connection) {
	if connection.unsure != "" {
		r.Uncertain, r.Subject.unsure = connection.unsure, connection.unsure
	}
}

// StateOf returns the state of a packet of a connection. restart reports that the
// packet begins a new connection in place of one that has ended.
func (t Tracker) StateOf(packet flow.Packet, connection *Connection, reply bool) (flags Flags, restart bool) {
	syn, ack, _, _, known := tcpFlags(packet.Get("tcp_flags"))
	opens := connection.Orig.Proto == flow.TCP && known && syn && !ack
	if opens && hasEnded(connection.OrigState) && hasEnded(connection.ReplyState) {
		return Flags{}, true
	}
	flags.Rel = connection.Related
	switch {
	case t.Userspace && connection.Orig.Proto == flow.TCP && known && tcpNonsense(packet.Get("tcp_flags")):
		return Flags{Inv: true}, false
	case reply:
		flags.Est, flags.Rpl = true, true
	case t.Userspace && connection.Orig.Proto == flow.TCP:
		opening := opens && (connection.OrigState == "" || connection.OrigState == "SYN_SENT")
		flags.Est, flags.New = !opening, opening
	case connection.SeenReply, !connection.Known:
		flags.Est = true
	default:
		flags.New = true
	}
	if flags.Rel && !flags.Rpl {
		flags.New = false
	}
	return flags, false
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

// handleNew handles a packet without a connection.
func (t Tracker) handleNew(r *Result, tuple Tuple, ct odp.Track) {
	r.Connection = nil
	if !t.MayBegin(r.Subject.Packet, tuple) {
		r.markInvalid(ct.Zone)
		return
	}
	meta := Meta{Tracked: true, Flags: Flags{New: true}, Zone: ct.Zone, Orig: tuple}
	if ct.Commit {
		connection := &Connection{Zone: ct.Zone, Orig: tuple, Reply: tuple.reverse(), Known: true, Mark: maskedMark(0, ct.Mark), Label: maskedLabel("", ct.Label), unsure: r.Subject.unsure}
		if tuple.Proto == flow.TCP {
			connection.OrigState = "SYN_SENT"
		}
		if ct.NAT != nil {
			t.chooseAddresses(r.Changes, connection, *ct.NAT)
			r.markUnsure(connection)
			r.Subject.translate(connection, false, &meta.Flags)
			meta.Flags.SNAT = meta.Flags.SNAT || ct.NAT.Src
			meta.Flags.DNAT = meta.Flags.DNAT || ct.NAT.Dst
		}
		r.Changes = r.Changes.add(t.Name, connection, false)
		r.Connection, r.OfQuestion = connection, true
		meta.Mark, meta.Label, meta.connection = connection.Mark, connection.Label, connection
	}
	r.Subject.Meta = meta
}

// MayBegin reports whether a packet can begin a connection.
func (t Tracker) MayBegin(packet flow.Packet, tuple Tuple) bool {
	if tuple.isICMP() {
		return tuple.isQuery()
	}
	if tuple.Proto != flow.TCP {
		return true
	}
	syn, ack, rst, fin, known := tcpFlags(packet.Get("tcp_flags"))
	switch {
	case !known:
		return true // taken as a SYN
	case syn && ack:
		return false
	case t.Userspace:
		return !tcpNonsense(packet.Get("tcp_flags"))
	}
	return syn && !rst && !fin || ack && !rst && !fin
}

// chooseAddresses sets the translated addresses and ports of a new connection.
func (t Tracker) chooseAddresses(changes *Changes, connection *Connection, nat odp.NAT) {
	addr, port := &connection.Reply.Dst, &connection.Reply.DstPort
	if nat.Dst {
		addr, port = &connection.Reply.Src, &connection.Reply.SrcPort
	}
	if nat.Min.IsValid() {
		*addr = nat.Min
		if !nat.IsFixed() {
			connection.unsure = fmt.Sprintf("NAT chooses one of the addresses %v to %v by a hash", nat.Min, nat.Max)
		}
	}
	if nat.MinPort != 0 && !connection.Orig.isICMP() && (*port < nat.MinPort || *port > nat.MaxPort || t.Userspace) {
		*port = nat.MinPort
		if nat.MinPort != nat.MaxPort {
			connection.unsure = fmt.Sprintf("NAT chooses one of the ports %d to %d", nat.MinPort, nat.MaxPort)
		}
	}
	if t.inUse(changes, connection) {
		connection.taken = true
		connection.unsure = fmt.Sprintf("another connection of zone %d uses the translated addresses and ports: NAT chooses another port", connection.Zone)
	}
}

// inUse reports whether the answers to a new connection would belong to another one.
func (t Tracker) inUse(changes *Changes, connection *Connection) bool {
	if match, ok, decided := changes.find(t.Name, connection.Zone, connection.Reply); decided {
		return ok && match.connection.Orig != connection.Orig
	}
	if connection.Reply.isICMP() && connection.Reply.ID == 0 {
		return false
	}
	_, _, ok := t.Table.find(connection.Zone, connection.Reply)
	return ok
}

// translate does the connection's address translation for one direction.
func (s *Subject) translate(connection *Connection, reply bool, flags *Flags) {
	from, to := connection.Directions(reply)
	flags.SNAT = flags.SNAT || from.Src != to.Src || !from.isICMP() && from.SrcPort != to.SrcPort
	flags.DNAT = flags.DNAT || from.Dst != to.Dst || !from.isICMP() && from.DstPort != to.DstPort
	s.setTuple(to)
}

// setTuple gives the packet the addresses and ports of a tuple.
func (s *Subject) setTuple(tuple Tuple) {
	src, dst, ok := s.Packet.Addresses()
	if ok && (src != tuple.Src || dst != tuple.Dst) {
		s.Packet.SetAddresses(tuple.Src, tuple.Dst)
	}
	if tuple.isICMP() {
		if tuple.ID != 0 && s.ID != 0 {
			s.ID = tuple.ID
		}
		return
	}
	for name, port := range map[string]uint16{"tp_src": tuple.SrcPort, "tp_dst": tuple.DstPort} {
		if n, ok := s.Packet.Number(name); ok && n != uint64(port) {
			s.Packet.Set(name, fmt.Sprint(port))
		}
	}
}
