package restore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// LACP
//
// Cause: a replica has no partner. Members of an active LACP then count as
// attached for three seconds ("expired"), and after that as detached: the bond
// drops, or falls back to active-backup.
//
// Remedy: stop the clock, let what has no partner time out by a warp, and give
// each member that had a partner the LACPDU (IEEE 802.1AX, 6.4.2.3) that the
// partner sent last, put together from what lacp/show tells of it, by
// netdev-dummy/receive. With the clock standing still it never expires.
//
// Source: measured against a real partner (OVS 3.1): lacp/show and bond/show
// equal the live ones. A second ovs-vswitchd as partner gives no more: it needs
// sockets, a database and daemons, and chooses port numbers and keys of its own.

// aggregate is what lacp/show tells of a port.
type aggregate struct {
	name       string
	negotiated bool
	members    []*aggregateMember
	byName     map[string]*aggregateMember
	others     strangers // members that are not asked for
}

// aggregateMember is one member of it. An expired one lost its partner less
// than three seconds ago.
type aggregateMember struct {
	name      string
	status    string // current, expired, defaulted
	attached  bool
	mayEnable bool
	actor     party
	partner   party
}

// party is one end of a link, as LACP describes it.
type party struct {
	sysPriority  uint16
	sysID        [6]byte
	key          uint16
	portPriority uint16
	port         uint16
	state        byte
}

// lacpStates are the words of lacp/show in the order of the state's bits.
func lacpStates() []string {
	return []string{"activity", "timeout", "aggregation", "synchronized", "collecting", "distributing", "defaulted", "expired"}
}

// aggregateHead matches "member: p1: current attached"; older versions say slave.
var aggregateHead = regexp.MustCompile(`^(?:member|slave): (.*): (current|expired|defaulted) (attached|detached)$`)

// aggregates is what lacp/show tells, as bonds is what bond/show does.
type aggregates struct {
	asked  portNames // for these; nil for all
	list   []*aggregate
	byName map[string]*aggregate
	others strangers        // that are not asked for
	at     *aggregate       // whose lines follow; nil for none that is asked for
	member *aggregateMember // whose lines follow; nil before an aggregate's first
}

func newAggregates(asked portNames) *aggregates {
	return &aggregates{asked: asked, byName: map[string]*aggregate{}}
}

// read takes the next line of lacp/show.
func (s *aggregates) read(line string) {
	line = strings.TrimSpace(line)
	if m := section.FindStringSubmatch(line); m != nil {
		s.begin(m[1])
		return
	}
	if s.at == nil {
		return
	}
	if m := aggregateHead.FindStringSubmatch(line); m != nil {
		s.beginMember(aggregateMember{name: m[1], status: m[2], attached: m[3] == "attached"})
		return
	}
	label, value, _ := strings.Cut(line, ":")
	if s.member == nil {
		s.at.negotiated = s.at.negotiated || label == "status" && strings.HasSuffix(value, " negotiated")
		return
	}
	s.member.read(label, strings.TrimSpace(value))
}

func (s *aggregates) begin(name string) {
	s.at, s.member = s.byName[name], nil
	switch {
	case !s.asked.has(name):
		s.others.add(name)
		return
	case s.at == nil:
		s.at = &aggregate{}
		s.list, s.byName[name] = append(s.list, s.at), s.at
	}
	*s.at = aggregate{name: name, byName: map[string]*aggregateMember{}}
}

func (s *aggregates) beginMember(m aggregateMember) {
	s.member = s.at.byName[m.name]
	if s.member == nil {
		s.member = &aggregateMember{}
		if s.asked.hasMember(s.at.name, m.name) {
			s.at.members, s.at.byName[m.name] = append(s.at.members, s.member), s.member
		} else {
			s.at.others.add(m.name)
		}
	}
	*s.member = m
}

func (s *aggregates) none() bool { return len(s.list) == 0 && s.others.count == 0 }

func (m *aggregateMember) read(label, value string) {
	if label == "may_enable" {
		m.mayEnable = value == "true"
	} else if field, ok := strings.CutPrefix(label, "actor "); ok {
		m.actor.read(field, value)
	} else if field, ok := strings.CutPrefix(label, "partner "); ok {
		m.partner.read(field, value)
	}
}

func (p *party) read(field, value string) {
	number, _ := strconv.ParseUint(value, 10, 16)
	switch field {
	case "sys_id":
		if mac, err := net.ParseMAC(value); err == nil && len(mac) == len(p.sysID) {
			copy(p.sysID[:], mac)
		}
	case "sys_priority":
		p.sysPriority = uint16(number)
	case "port_id":
		p.port = uint16(number)
	case "port_priority":
		p.portPriority = uint16(number)
	case "key":
		p.key = uint16(number)
	case "state":
		p.state = 0
		for _, word := range strings.Fields(value) {
			for bit, name := range lacpStates() {
				if word == name {
					p.state |= 1 << bit
				}
			}
		}
	}
}

// put appends a party as a LACPDU has it, with its type.
func (p party) put(pdu []byte, kind byte) []byte {
	const length = 20
	pdu = append(pdu, kind, length)
	pdu = binary.BigEndian.AppendUint16(pdu, p.sysPriority)
	pdu = append(pdu, p.sysID[:]...)
	pdu = binary.BigEndian.AppendUint16(pdu, p.key)
	pdu = binary.BigEndian.AppendUint16(pdu, p.portPriority)
	pdu = binary.BigEndian.AppendUint16(pdu, p.port)
	return append(pdu, p.state, 0, 0, 0)
}

// lacpdu is the frame that a partner sends. It says nothing of us: ovs-vswitchd
// then answers, and an answer is what makes it look at the port again.
func lacpdu(partner party) []byte {
	const (
		whole     = 124 // with the Ethernet header, without its checksum
		slowProto = "\x01\x80\xc2\x00\x00\x02"
	)
	frame := make([]byte, 0, whole)
	frame = append(frame, slowProto...)
	frame = append(frame, partner.sysID[:]...)
	frame = append(frame, 0x88, 0x09, 1, 1) // slow protocols; LACP, version 1
	frame = partner.put(frame, 1)
	frame = party{}.put(frame, 2)
	frame = append(frame, 3, 16) // the collector's part; all of it and the rest is zero
	return frame[:whole]
}

// receive makes a port of the replica receive a frame.
func (n *Node) receive(ctx context.Context, port string, frame []byte) error {
	_, err := n.appctl(ctx, "netdev-dummy/receive", port, hex.EncodeToString(frame))
	return err
}

// restoreLACP negotiates what had been negotiated. What it did is judged later,
// by what lacp/show and bond/show say then.
func (n *Node) restoreLACP(ctx context.Context, live *aggregates, o *report.Outcome) error {
	have, err := n.aggregates(ctx)
	if err != nil || have.none() {
		return err
	}
	if err := n.loseFormerPartners(ctx, have, o); err != nil {
		return err
	}
	for _, a := range have.list {
		want := live.byName[a.name]
		if want == nil {
			want = n.assumedPartner(a, o)
		}
		for _, m := range want.members {
			if m.status == "defaulted" {
				continue
			}
			if err := n.receive(ctx, m.name, lacpdu(m.partner)); err != nil {
				o.Note(report.Failed, "LACP of %q: its partner's packet on %q: %v", a.name, m.name, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	live.others.tell(o, workdir.RecordedLACP, "ports")
	return n.compareLACP(ctx, live.list, o)
}

// aggregates asks the replica.
func (n *Node) aggregates(ctx context.Context) (*aggregates, error) {
	out, err := n.appctl(ctx, "lacp/show")
	told := newAggregates(nil)
	for line := range strings.Lines(string(out)) {
		told.read(line)
	}
	return told, err
}

// loseFormerPartners lets the time pass in which ovs-vswitchd takes a member
// for one whose partner it has just lost, as it does when it starts.
func (n *Node) loseFormerPartners(ctx context.Context, have *aggregates, o *report.Outcome) error {
	const timeout = "3001" // three times the fast rate, in ms
	if !have.waiting() {
		return nil
	}
	if _, err := n.appctl(ctx, "time/warp", timeout); err != nil {
		o.Note(report.Failed, "LACP: time can't be moved: %v", err)
		return ctx.Err()
	}
	return n.until(ctx, func() (bool, error) {
		have, err := n.aggregates(ctx)
		return !have.waiting(), err
	})
}

// waiting tells whether any member lost its partner just now.
func (s *aggregates) waiting() bool {
	for _, a := range s.list {
		for _, m := range a.members {
			if m.status == "expired" {
				return true
			}
		}
	}
	return false
}

// assumedPartner stands in for a partner that nothing was collected of.
func (n *Node) assumedPartner(a *aggregate, o *report.Outcome) *aggregate {
	o.Note(report.Unknown, "LACP of %q: no lacp/show was collected: a partner that agrees on every member is assumed", a.name)
	agrees := party{sysPriority: 65535, sysID: [6]byte{0x02, 0, 0, 0, 0, 1}, key: 1, portPriority: 65535, state: 0x3d}
	want := &aggregate{name: a.name, negotiated: true}
	for i, m := range a.members {
		assumed := aggregateMember{name: m.name, status: "current", partner: agrees}
		assumed.partner.port = uint16(i + 1)
		want.members = append(want.members, &assumed)
	}
	return want
}

// compareLACP waits until the replica says of each member what the live node
// said, and notes where it doesn't.
func (n *Node) compareLACP(ctx context.Context, live []*aggregate, o *report.Outcome) error {
	if len(live) == 0 {
		return nil
	}
	var differ []string
	err := n.until(ctx, func() (bool, error) {
		have, err := n.aggregates(ctx)
		differ = differences(live, have)
		return len(differ) == 0, err
	})
	if len(differ) == 0 {
		o.Note(report.Restored, "")
	}
	for _, d := range differ {
		o.Note(report.Failed, "LACP of %s", d)
	}
	for _, a := range live {
		for _, m := range a.members {
			if m.status == "expired" {
				o.Note(report.Approximated, "LACP of %q: %q had lost its partner seconds ago: it shows as current, and forwards as little", a.name, m.name)
			}
		}
	}
	return err
}

func differences(live []*aggregate, have *aggregates) []string {
	found := map[string]*aggregateMember{}
	for _, a := range have.list {
		for _, m := range a.members {
			found[m.name] = m
		}
	}
	var list []string
	for _, a := range live {
		if h := have.byName[a.name]; a.negotiated != (h != nil && h.negotiated) {
			list = append(list, fmt.Sprintf("%q: negotiated %v, in the replica %v", a.name, a.negotiated, !a.negotiated))
		}
		if a.others.count > 0 {
			list = append(list, fmt.Sprintf("%q: %d members are not in the database; the first: %q", a.name, a.others.count, a.others.first))
		}
		for _, m := range a.members {
			h := found[m.name]
			if h == nil {
				list = append(list, fmt.Sprintf("%q: the replica has no member %q", a.name, m.name))
			} else if s, t := m.essence(), h.essence(); s != t {
				list = append(list, fmt.Sprintf("%q: %q was %s, in the replica %s", a.name, m.name, s, t))
			}
		}
	}
	return list
}

// essence is what a member is compared by.
func (m aggregateMember) essence() string {
	status, word := m.status, "detached"
	if status == "expired" {
		status = "current"
	}
	if m.attached {
		word = "attached"
	}
	return fmt.Sprintf("%s, %s, may_enable %v, partner %x/%d", status, word, m.mayEnable, m.partner.sysID, m.partner.port)
}

// recordedLACP reads what lacp/show said on the live node of the ports that the
// database has.
func (n *Node) recordedLACP() (*aggregates, error) {
	told := newAggregates(n.portNames())
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedLACP), func(line string) error {
		told.read(line)
		return nil
	})
	return told, err
}
