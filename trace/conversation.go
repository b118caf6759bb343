package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/frame"
)

// conversation is what the packets of a capture between two addresses and ports left.
type conversation struct {
	// courses exclude each other; there is at least one.
	courses []course
	// answers reports that packets came to FROM that could not be followed: the packets of
	// FROM belong to a connection that is not known.
	answers bool
	cut     bool               // there are more courses than are kept
	version int                // counts the changes of its states
	asked   map[string][]asked // in these states
}

// course is what packets left that took one of several ways, of the buckets of a group.
type course struct {
	state    *follow.State
	choice   string    // the bucket that was chosen, "" for no choice
	arrivals []arrival // of the last packet of FROM
}

// asked is a question that was asked for frames of some sizes.
type asked struct {
	min, max int
	sent     *Sent
}

// maxCourses bounds the ways that are kept of a conversation.
const maxCourses = 64

// connectionOf returns a name for the connection that a packet belongs to, the same one in
// both directions; "" for a packet of none.
func connectionOf(f frame.Frame, first *frame.Frame) string {
	p, id := f.Packet, f.ID
	switch {
	case f.Quoted != nil:
		p, id = f.Quoted.Packet, f.Quoted.ID
	case first != nil:
		p, id = first.Packet, first.ID
	}
	t, ok := conntrack.TupleOf(p, id)
	if !ok {
		return ""
	}
	ends := []string{fmt.Sprint(t.Src, t.SrcPort), fmt.Sprint(t.Dst, t.DstPort)}
	if t.Proto == flow.ICMP || t.Proto == flow.ICMPv6 {
		ends = []string{t.Src.String(), t.Dst.String()}
	}
	slices.Sort(ends)
	return fmt.Sprint(t.Proto, ends, t.ID, tagOf(f.Packet))
}

func (c *capture) conversation(key string) *conversation {
	conv := c.conversations[key]
	if conv == nil {
		conv = &conversation{courses: []course{{}}, asked: map[string][]asked{}}
		c.conversations[key] = conv
	}
	return conv
}

// question returns what distinguishes a packet of the conversation, and the state in which it
// is sent.
func (conv *conversation) question(text string, f frame.Frame, first *frame.Frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %d %v %v", conv.version, text, f.ID, f.Headless, conv.answers)
	if f.Quoted != nil {
		fmt.Fprintf(&b, " %s %d", f.Quoted.Packet, f.Quoted.ID)
	}
	if first != nil {
		fmt.Fprintf(&b, " %s %d", first.Packet, first.Size)
	}
	return b.String()
}

// known returns the question that was asked for frames of a size, or for smaller and for
// larger ones with the same answer; nil for none.
func (conv *conversation) known(question string, size int) *asked {
	for i, a := range conv.asked[question] {
		if a.min <= size && size <= a.max {
			return &conv.asked[question][i]
		}
	}
	return nil
}

// remember keeps the answer for a size, and for the sizes between it and others with the same
// answer: a larger frame meets all limits that a smaller one exceeds.
func (conv *conversation) remember(question string, size int, s *Sent) {
	list := conv.asked[question]
	for i, a := range list {
		low, high := min(a.min, size), max(a.max, size)
		between := func(other asked) bool { return other.sent != a.sent && other.min <= high && other.max >= low }
		if a.sent == s && !slices.ContainsFunc(list, between) {
			list[i].min, list[i].max = low, high
			return
		}
	}
	conv.asked[question] = append(list, asked{size, size, s})
}

// after returns what a packet of FROM left that took a course of its conversation.
func (was course) after(root *follow.Hop, state *follow.State) []course {
	var list []course
	for _, o := range root.Outcomes(state) {
		at := slices.IndexFunc(list, func(c course) bool { return c.state == o.State })
		if at < 0 {
			at, list = len(list), append(list, course{state: o.State, choice: strings.Trim(was.choice+", "+o.Choice, ", ")})
		}
		if o.Branch.Kind == follow.Delivered {
			list[at].arrivals = append(list[at].arrivals, arrival{hop: o.Hop, branch: o.Branch})
		}
	}
	return list
}

// moveOn sets what the packets of a conversation left. A packet that comes out at FROM itself
// is part of the same conversation: FROM is a member of its own load balancer.
func (c *capture) moveOn(conv *conversation, courses []course) {
	if len(courses) > maxCourses {
		courses, conv.cut = courses[:maxCourses], true
	}
	sameState := func(a, b course) bool { return a.state == b.state }
	if !slices.EqualFunc(conv.courses, courses, sameState) {
		conv.version++
		clear(conv.asked)
	}
	conv.courses = courses
	for _, course := range courses {
		for _, a := range course.arrivals {
			if c.isHere(a.hop, a.branch) {
				c.conversations[connectionOf(frame.Frame{Packet: a.branch.Packet, ID: a.branch.ID}, nil)] = conv
			}
		}
	}
}

// isHere reports whether an end is at the interface of the capture.
func (c *capture) isHere(h *follow.Hop, b follow.Branch) bool {
	return b.Kind == follow.Delivered && h.Node == c.tap.node.Name && b.Port == c.tap.port
}

// doubt makes an answer Undetermined that another state of the connection may change: the
// packet belongs to a connection, and none is recorded for it.
func (c *capture) doubt(ctx context.Context, conv *conversation, start follow.Start, w *writer) error {
	if w.answer.Verdict == answer.Reachable || mayOpen(start) && !conv.answers {
		return nil
	}
	node, missing := unrecorded(w.root)
	if missing == nil {
		return nil
	}
	others, err := c.inStates(ctx, start, c.arrived, statesOf(start, conv.answers))
	differs := func(a *answer.Answer) bool { return a.Verdict != w.answer.Verdict }
	if err != nil || !slices.ContainsFunc(others, differs) {
		return err
	}
	owner := ""
	if missing.Owner != "" {
		owner = " of " + missing.Owner
	}
	why := "how that began is not in the capture"
	if conv.answers {
		why = "the packets that it answers could not be followed to this port"
	}
	w.answer.Verdict = answer.Undetermined
	w.answer.Missing = []string{fmt.Sprintf("on node %s: zone %d%s has no connection to which the packet belongs, and %s", node, missing.Zone, owner, why)}
	return nil
}

// wellKnown is the first port that is not reserved for well-known services (RFC 6335).
const wellKnown = 1024

// mayOpen reports whether a packet may open a connection.
func mayOpen(start follow.Start) bool {
	t, ok := conntrack.TupleOf(start.Packet, start.ID)
	switch {
	case !ok:
		return true
	case t.Proto == flow.ICMP, t.Proto == flow.ICMPv6:
		_, query := conntrack.AnswerTo(t)
		return query
	case t.Proto == flow.UDP && t.SrcPort < wellKnown && t.DstPort >= wellKnown:
		return false // it looks like the answer of a server
	case t.Proto == flow.TCP && !start.Headless && start.Packet.Fragmentation() != "later":
		flags := strings.Split(start.Packet.Get("tcp_flags"), "|")
		return slices.Contains(flags, "syn") && !slices.Contains(flags, "ack")
	}
	return true
}

// unrecorded returns the first lookup that found no connection, with its node; nil for none.
func unrecorded(h *follow.Hop) (node string, missing *follow.Connection) {
	for _, b := range h.Branches {
		if b.Connection != nil && b.Connection.Entry == "" && !b.Connection.OfQuestion {
			return h.Node, b.Connection
		}
		if b.Next != nil {
			if node, missing = unrecorded(b.Next); missing != nil {
				return node, missing
			}
		}
	}
	return "", nil
}

// statesOf returns the states that a packet of a connection may have. answers reports that
// its sender answers.
func statesOf(start follow.Start, answers bool) []conntrack.Flags {
	t, _ := conntrack.TupleOf(start.Packet, start.ID)
	switch {
	case t.IsError():
		return []conntrack.Flags{{Rel: true}, {Rel: true, Rpl: true}}
	case answers:
		return []conntrack.Flags{{Est: true, Rpl: true}}
	}
	return []conntrack.Flags{{Est: true}, {Est: true, Rpl: true}}
}

// inStates follows a packet in each of several states, which it has where conntrack knows no
// connection for it.
func (s *Session) inStates(ctx context.Context, start follow.Start, arrived func(*follow.Hop, follow.Branch) bool, states []conntrack.Flags) ([]*answer.Answer, error) {
	var list []*answer.Answer
	for _, state := range states {
		start.Assumed = &state
		w := s.writer("", arrived)
		if err := w.follow(ctx, start); err != nil {
			return nil, err
		}
		list = append(list, w.answer)
	}
	return list, nil
}

// sameHeaders reports whether a packet that comes out is one that was captured, but for what
// the way of it changes.
func sameHeaders(out, captured flow.Packet) bool {
	plain := func(p flow.Packet) flow.Packet {
		c := p.Headers()
		c.Delete("nw_ttl", "nw_tos", "nw_ecn", "ipv6_label", "vlan_tci", "nw_frag")
		return c
	}
	return plain(out).SameHeaders(plain(captured))
}
