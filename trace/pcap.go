package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/frame"
	"ovs-offline/trace/names"
	"ovs-offline/trace/rules"
)

// Sent is a packet of a capture file, and what becomes of it. Packets with the same headers
// and the same answer are one Sent.
type Sent struct {
	Packets int `json:"packets"`
	// From is the sender, of an interface that carries the packets of several; "" for FROM.
	From string `json:"from,omitempty"`
	Flow string `json:"flow"`
	// MinSize and MaxSize are the sizes of the frames in bytes.
	MinSize int            `json:"min_size"`
	MaxSize int            `json:"max_size"`
	Answer  *answer.Answer `json:"answer,omitempty"`
	Error   string         `json:"error,omitempty"` // why the packet could not be followed
}

// Captured is what a capture file holds of one sender.
type Captured struct {
	Sent []*Sent `json:"sent"`
	// Others counts the packets of other senders, Elsewhere those of FROM that are not for TO,
	// and Unread those that can't be read.
	Others    int `json:"others,omitempty"`
	Elsewhere int `json:"elsewhere,omitempty"`
	Unread    int `json:"unread,omitempty"`
	// Cut reports that the file ends within a packet, as that of an interrupted tcpdump.
	Cut bool `json:"cut,omitempty"`
}

// maxCaptured bounds the packets of a capture that differ, and maxConversations the connections
// that its packets may belong to.
const (
	maxCaptured      = 10_000
	maxConversations = 100_000
)

// Capture follows the packets of a capture file, in the formats pcap and pcapng, that From
// has sent. They are followed in their order, with the connections that earlier ones left:
// those of From, and those that it received, which are followed from where they began.
// Without To, a packet is expected to come out anywhere.
func (s *Session) Capture(ctx context.Context, b Between, file io.Reader) (*Captured, error) {
	from, err := s.names.Find(b.From, names.Filter{Network: b.Network})
	if err != nil {
		return nil, err
	}
	t, err := s.tapOf(from)
	if err != nil {
		return nil, err
	}
	c := &capture{Session: s, tap: t, arrived: anywhere, conversations: map[string]*conversation{}, alike: map[string][]*Sent{}, firsts: map[string]frame.Frame{}}
	if b.To != "" {
		to, _, err := s.destination(b)
		if err != nil {
			return nil, err
		}
		c.to, c.arrived = &to, at(to)
	}
	in, err := openCapture(file)
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		raw, size, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return &c.Captured, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			c.Cut = true
			return &c.Captured, nil
		case err != nil:
			return nil, err
		}
		if err := c.packet(ctx, raw, size); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// capture is a capture file on its way.
type capture struct {
	*Session
	Captured
	tap           *tap
	to            *names.Endpoint // nil for any
	arrived       func(*follow.Hop, follow.Branch) bool
	conversations map[string]*conversation
	alike         map[string][]*Sent     // by sender and flow
	firsts        map[string]frame.Frame // first fragments, by datagram
	learned       *follow.State          // the flows that packets have added
	services      map[string][]names.Endpoint
}

// packet follows a packet: for its answer if it is one of FROM, else for the connection that
// it belongs to.
func (c *capture) packet(ctx context.Context, raw []byte, size int) error {
	f, err := frame.Parse(raw)
	if err != nil || f.Headless && len(raw) < size { // the capture has only the beginning of each packet
		c.Unread++
		return nil
	}
	if len(c.conversations) > maxConversations {
		return fmt.Errorf("more than %d connections: select some with a filter of tcpdump", maxConversations)
	}
	f.Size, f.Packet = size, c.tap.tagged(f.Packet)
	first := c.first(f)
	e, sent, ok := c.tap.sender(f.Packet)
	switch {
	case sent && c.tap.isAsked(e):
		return c.sent(ctx, e, f, first)
	case ok && !sent && c.tap.isAsked(e) && c.tap.receives(e, f.Packet):
		c.Others++
		return c.received(ctx, e, f, first)
	}
	c.Others++
	return nil
}

// maxFirsts bounds the first fragments that are kept.
const maxFirsts = 4096

// first returns the first fragment of the datagram of a fragment, nil if it is not known or
// for another packet.
func (c *capture) first(f frame.Frame) *frame.Frame {
	kind := f.Packet.Fragmentation()
	if kind == "" {
		return nil
	}
	src, dst, _ := f.Packet.Addresses()
	key := fmt.Sprint(src, dst, f.Datagram, tagOf(f.Packet))
	if kind == "first" {
		if len(c.firsts) == maxFirsts {
			clear(c.firsts)
		}
		c.firsts[key] = f
	}
	if first, ok := c.firsts[key]; ok {
		return &first
	}
	return nil
}

// start returns where a packet of the interface begins.
func (c *capture) start(f frame.Frame, first *frame.Frame) follow.Start {
	s := follow.Start{Node: c.tap.node.Name, InPort: c.tap.port.Name, Packet: f.Packet, Size: f.Size, ID: f.ID, Headless: f.Headless}
	if f.Quoted != nil {
		s.Quoted, s.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	if first != nil {
		s.First, s.FirstSize = &first.Packet, first.Size
	}
	return s
}

// sent follows a packet of FROM, unless one like it has been followed in the same state.
func (c *capture) sent(ctx context.Context, e names.Endpoint, f frame.Frame, first *frame.Frame) error {
	offloaded := c.segment(&f)
	conv := c.conversation(connectionOf(f, first))
	text := f.Packet.Input()
	question := conv.question(text, f, first)
	if known := conv.known(question, f.Size); known != nil {
		c.count(known.sent, f.Size)
		return nil
	}
	if len(c.Sent) == maxCaptured {
		return fmt.Errorf("more than %d different packets: select some with a filter of tcpdump", maxCaptured)
	}
	one := &Sent{Packets: 1, Flow: text, MinSize: f.Size, MaxSize: f.Size}
	if e.LogicalPort != c.tap.from.LogicalPort {
		one.From = e.Name
	}
	a, err := c.answer(ctx, conv, c.start(f, first), offloaded)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		one.Error = err.Error()
	case c.to != nil && !c.isFor(f.Packet, a):
		conv.remember(question, f.Size, nil)
		c.count(nil, f.Size)
		return nil
	default:
		one.Answer = a
	}
	conv.remember(question, f.Size, c.add(one))
	return nil
}

// add adds a packet with its answer, and returns the one that it is equal to, or itself.
func (c *capture) add(one *Sent) *Sent {
	key := one.From + "\x00" + one.Flow
	for _, known := range c.alike[key] {
		if known.Error == one.Error && isSame(known.Answer, one.Answer) {
			c.count(known, one.MinSize)
			return known
		}
	}
	c.alike[key] = append(c.alike[key], one)
	c.Sent = append(c.Sent, one)
	return one
}

// isSame reports whether two answers say the same of a packet. Its size may differ, which the
// rule of a drop names, and in what state conntrack has its connection.
func isSame(a, b *answer.Answer) bool {
	if a == nil || b == nil {
		return a == b
	}
	says := func(a *answer.Answer) []any {
		if a.Drop == nil || a.Drop.Reason != string(rules.MTU) {
			return []any{a.Verdict, a.Missing, a.Outcomes, a.Generated, a.Drop}
		}
		drop := *a.Drop
		drop.Rule = ""
		return []any{a.Verdict, a.Missing, a.Outcomes, a.Generated, drop}
	}
	return reflect.DeepEqual(says(a), says(b))
}

// count counts a packet that was answered before; nil stands for those that are not for TO.
func (c *capture) count(s *Sent, size int) {
	if s == nil {
		c.Elsewhere++
		return
	}
	s.Packets++
	s.MinSize, s.MaxSize = min(s.MinSize, size), max(s.MaxSize, size)
}

// segment gives a frame that is larger than its sender's MTU the size of the largest segment
// that its interface may make of it, and returns what that assumes; "" for other frames.
func (c *capture) segment(f *frame.Frame) string {
	const ethernet, tag = 14, 4
	most := c.tap.port.MTU + ethernet
	if f.Packet.IsTagged() {
		most += tag
	}
	if number, _ := f.Packet.Protocol(); number != flow.TCP || c.tap.port.MTU == 0 || f.Size <= most {
		return ""
	}
	text := fmt.Sprintf("the frame is larger than the MTU of port %s, %d: TCP segmentation offload makes segments of at most that size of it", c.tap.port.Name, c.tap.port.MTU)
	f.Size = most
	return text
}

// isFor reports whether a packet is for TO: it is addressed to it, to an address that leads
// to it, or it comes out there.
func (c *capture) isFor(p flow.Packet, a *answer.Answer) bool {
	if hasAddress(p, *c.to) || slices.ContainsFunc(a.Outcomes, func(o answer.Outcome) bool { return o.Destination }) {
		return true
	}
	for _, e := range c.named(destination(p)) {
		for _, ip := range c.to.IPs {
			var back flow.Packet
			back.Set("nw_dst", ip.String())
			if isBackend(back, e) {
				return true
			}
		}
	}
	return false
}

// answer follows a packet of FROM in each state that its conversation may have.
func (c *capture) answer(ctx context.Context, conv *conversation, start follow.Start, assumed string) (*answer.Answer, error) {
	var answers []alternative
	var courses []course
	for _, was := range conv.courses {
		start.State = was.state.WithLearned(c.learned)
		var w *writer
		a, err := c.whole(func() (*answer.Answer, error) {
			w = c.writer(fmt.Sprintf("%s %s: %s", start.Node, start.InPort, start.Packet.Input()), c.arrived)
			if assumed != "" {
				w.assume(assumed)
			}
			if conv.cut {
				w.assume(fmt.Sprintf("the packets before it took one of the first %d ways that they may have taken", maxCourses))
			}
			return w.answer, w.follow(ctx, start)
		})
		if err != nil {
			return nil, err
		}
		if err := c.doubt(ctx, conv, start, w); err != nil {
			return nil, err
		}
		answers = append(answers, alternative{a, was.choice})
		courses = append(courses, was.after(w.root, w.state)...)
		c.learned = c.learned.WithLearned(w.state)
	}
	c.moveOn(conv, courses)
	return merged(answers), nil
}

// alternative is the answer to a packet if an earlier one of its connection took one of
// several ways.
type alternative struct {
	*answer.Answer
	choice string
}

// merged returns the answer to a packet of which one of several answers is right.
func merged(answers []alternative) *answer.Answer {
	for _, a := range answers {
		if a.Verdict == answer.Undetermined {
			return a.Answer
		}
	}
	first := answers[0].Answer
	differs := func(a alternative) bool { return a.Verdict != first.Verdict }
	at := slices.IndexFunc(answers, differs)
	if at < 0 {
		return first
	}
	if first.Verdict == answer.Reachable {
		first = answers[at].Answer // its path shows where the packet is lost
	}
	mixed := *first
	mixed.Verdict, mixed.Outcomes, mixed.Path = answer.Ambiguous, nil, slices.Clone(first.Path)
	for _, a := range answers {
		for _, o := range a.Outcomes {
			o.Choice = cmp.Or(o.Choice, a.choice)
			mixed.Outcomes = append(mixed.Outcomes, o)
		}
		for i := range mixed.Path {
			if a.Answer == first {
				mixed.Path[i].Choice = cmp.Or(mixed.Path[i].Choice, a.choice)
			}
		}
	}
	return &mixed
}
