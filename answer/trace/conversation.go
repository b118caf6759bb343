package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/frame"
	"ovs-offline/pkg/openflow/flow"
)

// conversation is what the packets of a capture between two addresses and ports left.
type conversation struct {
	// courses exclude each other; there is at least one.
	courses []course
	// answers reports that packets came to FROM that could not be followed: the packets of
	// FROM belong to a connection that is not known.
	answers bool
	cut     bool                   // there are more courses than are kept
	version int                    // counts the changes of its states
	asked   map[string][]sizeRange // by question, in these states
}

// course is what the packets of a conversation left if they took one of several ways, such as one
// bucket of a group.
type course struct {
	state    *follow.State
	choice   string    // the bucket that was chosen, "" for no choice
	arrivals []arrival // of the last packet of FROM
}

// sizeRange is the sizes of frames for which a question was asked, and the answer to all of them.
type sizeRange struct {
	min, max int
	sent     *Sent
}

// maxCourses bounds the courses of a conversation that are kept.
const maxCourses = 64

// connectionOf returns a name for the connection that a packet belongs to, the same one in
// both directions; "" for a packet without one.
func connectionOf(captured frame.Frame, first *frame.Frame) string {
	packet, id := captured.Packet, captured.ID
	switch {
	case captured.Quoted != nil:
		packet, id = captured.Quoted.Packet, captured.Quoted.ID
	case first != nil:
		packet, id = first.Packet, first.ID
	}
	tuple, ok := conntrack.TupleOf(packet, id)
	if !ok {
		return ""
	}
	ends := []string{fmt.Sprint(tuple.Src, tuple.SrcPort), fmt.Sprint(tuple.Dst, tuple.DstPort)}
	if tuple.Proto == flow.ICMP || tuple.Proto == flow.ICMPv6 {
		ends = []string{tuple.Src.String(), tuple.Dst.String()}
	}
	slices.Sort(ends)
	return fmt.Sprint(tuple.Proto, ends, tuple.ID, tagOf(captured.Packet))
}

// conversation returns the conversation with a key, a new one if there is none.
func (c *capture) conversation(key string) *conversation {
	conv := c.conversations[key]
	if conv == nil {
		conv = &conversation{courses: []course{{}}, asked: map[string][]sizeRange{}}
		c.conversations[key] = conv
	}
	return conv
}

// question returns what distinguishes a packet of the conversation, and the state in which it
// is sent.
func (conv *conversation) question(text string, captured frame.Frame, first *frame.Frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %d %v %v", conv.version, text, captured.ID, captured.Headless, conv.answers)
	if captured.Quoted != nil {
		fmt.Fprintf(&b, " %s %d", captured.Quoted.Packet, captured.Quoted.ID)
	}
	if first != nil {
		fmt.Fprintf(&b, " %s %d", first.Packet, first.Size)
	}
	return b.String()
}

// known returns the range of sizes of a question that holds a size, nil if the question was not
// asked for it, nor for smaller and larger ones with the same answer.
func (conv *conversation) known(question string, size int) *sizeRange {
	for i, known := range conv.asked[question] {
		if known.min <= size && size <= known.max {
			return &conv.asked[question][i]
		}
	}
	return nil
}

// remember keeps the answer for a size, and for the sizes between it and others with the same
// answer: a larger frame meets all limits that a smaller one exceeds.
func (conv *conversation) remember(question string, size int, sent *Sent) {
	list := conv.asked[question]
	for i, known := range list {
		low, high := min(known.min, size), max(known.max, size)
		between := func(other sizeRange) bool { return other.sent != known.sent && other.min <= high && other.max >= low }
		if known.sent == sent && !slices.ContainsFunc(list, between) {
			list[i].min, list[i].max = low, high
			return
		}
	}
	conv.asked[question] = append(list, sizeRange{size, size, sent})
}

// after returns the courses after a packet of FROM that was sent in a course of its conversation.
func (was course) after(root *follow.Hop, state *follow.State) []course {
	var list []course
	for _, outcome := range root.Outcomes(state) {
		at := slices.IndexFunc(list, func(c course) bool { return c.state == outcome.State })
		if at < 0 {
			at, list = len(list), append(list, course{state: outcome.State, choice: strings.Trim(was.choice+", "+outcome.Choice, ", ")})
		}
		if outcome.Branch.Kind == follow.Delivered {
			list[at].arrivals = append(list[at].arrivals, arrival{hop: outcome.Hop, branch: outcome.Branch})
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
	sameState := func(was, is course) bool { return was.state == is.state }
	if !slices.EqualFunc(conv.courses, courses, sameState) {
		conv.version++
		clear(conv.asked)
	}
	conv.courses = courses
	for _, course := range courses {
		for _, arrived := range course.arrivals {
			if c.isHere(arrived.hop, arrived.branch) {
				c.conversations[connectionOf(frame.Frame{Packet: arrived.branch.Packet, ID: arrived.branch.ID}, nil)] = conv
			}
		}
	}
}

// isHere reports whether an end is at the interface of the capture, or on a physical network if
// that is where the capture is from.
func (c *capture) isHere(hop *follow.Hop, branch follow.Branch) bool {
	if c.tap.node == nil {
		return branch.Kind == follow.Delivered && len(branch.Networks) > 0
	}
	return branch.Kind == follow.Delivered && hop.Node == c.tap.node.Name && branch.Port == c.tap.port
}

// doubt makes an answer Undetermined that another state of the connection may change: the
// packet belongs to a connection, and none is recorded for it.
func (c *capture) doubt(ctx context.Context, conv *conversation, start follow.Start, asked *inquiry) error {
	if asked.answer.Verdict == answer.Reachable || mayOpen(start) && !conv.answers {
		return nil
	}
	node, missing := unrecorded(asked.root)
	if missing == nil {
		return nil
	}
	others, err := c.inStates(ctx, start, c.arrived, statesOf(start, conv.answers))
	differs := func(a *answer.Answer) bool { return a.Verdict != asked.answer.Verdict }
	if err != nil || !slices.ContainsFunc(others, differs) {
		return err
	}
	owner := ""
	if missing.Owner != "" {
		owner = " of " + missing.Owner
	}
	why := "how that began is not in the capture"
	if conv.answers {
		why = "the packets that it answers could not be followed to " + c.tap.from.Name
	}
	asked.answer.Verdict = answer.Undetermined
	asked.answer.Missing = []string{fmt.Sprintf("on node %s: zone %d%s has no connection to which the packet belongs, and %s", node, missing.Zone, owner, why)}
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
func unrecorded(hop *follow.Hop) (node string, missing *follow.Lookup) {
	for _, branch := range hop.Branches {
		if branch.Lookup != nil && branch.Lookup.Text == "" && !branch.Lookup.OfQuestion {
			return hop.Node, branch.Lookup
		}
		if branch.Next != nil {
			if node, missing = unrecorded(branch.Next); missing != nil {
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

// inStates follows a packet in each of several states, which it has wherever conntrack knows no
// connection for it.
func (s *Session) inStates(ctx context.Context, start follow.Start, arrived endTest, states []conntrack.Flags) ([]*answer.Answer, error) {
	var list []*answer.Answer
	for _, state := range states {
		start.Assumed = &state
		asked := s.inquire("", arrived)
		if err := asked.follow(ctx, start); err != nil {
			return nil, err
		}
		list = append(list, asked.answer)
	}
	return list, nil
}

// sameHeaders reports whether a packet that comes out is a captured one, apart from fields that
// change on the way.
func sameHeaders(out, captured flow.Packet) bool {
	plain := func(p flow.Packet) flow.Packet {
		c := p.Headers()
		c.Delete("nw_ttl", "nw_tos", "nw_ecn", "ipv6_label", "vlan_tci", "nw_frag")
		return c
	}
	return plain(out).SameHeaders(plain(captured))
}
