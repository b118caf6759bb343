package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/frame"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
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
	// Others counts the packets of other senders, Elsewhere the packets of FROM that are not for
	// TO, and Unread the packets that can't be read.
	Others    int `json:"others,omitempty"`
	Elsewhere int `json:"elsewhere,omitempty"`
	Unread    int `json:"unread,omitempty"`
	// Cut reports that the file ends within a packet, as after an interrupted tcpdump.
	Cut bool `json:"cut,omitempty"`
}

// maxCaptured bounds the packets of a capture that differ, and maxConversations the connections
// that its packets may belong to.
const (
	maxCaptured      = 10_000
	maxConversations = 100_000
)

// Capture follows the packets that From sent, out of a capture file in the format pcap or pcapng.
// It follows them in their order, with the connections that earlier packets left. For these, it
// also follows the packets that From received, from where each of them began.
// Without To, a packet is expected to come out anywhere.
func (s *Session) Capture(ctx context.Context, between Between, file io.Reader) (*Captured, error) {
	from, err := s.names.Find(between.From, names.Filter{Network: between.Network})
	if err != nil {
		return nil, err
	}
	tap, err := s.tapOf(from)
	if err != nil {
		return nil, err
	}
	read := &capture{Session: s, tap: tap, arrived: isDelivered, conversations: map[string]*conversation{}, alike: map[string][]*Sent{}, firsts: map[string]frame.Frame{}}
	if between.To != "" {
		to, _, err := s.destination(between, from)
		if err != nil {
			return nil, err
		}
		read.to, read.arrived = &to, endsAt(to)
	}
	in, err := openCapture(file)
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		raw, size, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return &read.Captured, read.checkSent()
		case errors.Is(err, io.ErrUnexpectedEOF):
			read.Cut = true
			return &read.Captured, read.checkSent()
		case err != nil:
			return nil, err
		}
		if err := read.followPacket(ctx, raw, size); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// checkSent returns an error if no packet was asked about, so that there is no answer.
func (c *capture) checkSent() error {
	switch {
	case len(c.Sent) > 0:
		return nil
	case c.Elsewhere > 0:
		return fmt.Errorf("%w: none of the %d packets that %s sent is for %s", ErrQuestion, c.Elsewhere, c.tap.from.Name, c.to.Name)
	}
	text := fmt.Sprintf("it has no packet that %s sent", c.tap.from.Name)
	if c.tap.from.MAC != "" {
		text += " (" + c.tap.from.MAC + ")"
	}
	if c.Others > 0 {
		text += fmt.Sprintf(": %d are of other senders", c.Others)
	}
	if c.Unread > 0 {
		text += fmt.Sprintf(": %d can't be read", c.Unread)
	}
	return fmt.Errorf("%w: %s", ErrQuestion, text)
}

// capture is a capture file while its packets are followed.
type capture struct {
	*Session
	Captured
	tap           *tap
	to            *names.Endpoint // nil for any
	arrived       endTest
	conversations map[string]*conversation
	alike         map[string][]*Sent     // by sender and flow
	firsts        map[string]frame.Frame // first fragments, by datagram
	learned       *follow.State          // the flows that packets have added
	services      map[string][]names.Endpoint
}

// followPacket follows a packet: for its answer if FROM sent it, else for the connection that it
// belongs to.
func (c *capture) followPacket(ctx context.Context, raw []byte, size int) error {
	captured, err := frame.Parse(raw)
	if err != nil || captured.Headless && len(raw) < size { // the capture has only the beginning of each packet
		c.Unread++
		return nil
	}
	if len(c.conversations) > maxConversations {
		return fmt.Errorf("more than %d connections: select some with a filter of tcpdump", maxConversations)
	}
	captured.Size, captured.Packet = size, c.tap.addTag(captured.Packet)
	first := c.firstFragment(captured)
	endpoint, sent, ok := c.tap.sender(captured.Packet)
	switch {
	case sent && c.tap.isAsked(endpoint):
		return c.followSent(ctx, endpoint, captured, first)
	case ok && !sent && c.tap.isAsked(endpoint) && c.tap.receives(endpoint, captured.Packet):
		c.Others++
		return c.followReceived(ctx, endpoint, captured, first)
	}
	c.Others++
	return nil
}

// maxFirsts bounds the first fragments that are kept.
const maxFirsts = 4096

// firstFragment returns the first fragment of the datagram of a fragment, nil if it is not known or
// for another packet.
func (c *capture) firstFragment(captured frame.Frame) *frame.Frame {
	kind := captured.Packet.Fragmentation()
	if kind == "" {
		return nil
	}
	src, dst, _ := captured.Packet.Addresses()
	key := fmt.Sprint(src, dst, captured.Datagram, tagOf(captured.Packet))
	if kind == "first" {
		if len(c.firsts) == maxFirsts {
			clear(c.firsts)
		}
		c.firsts[key] = captured
	}
	if first, ok := c.firsts[key]; ok {
		return &first
	}
	return nil
}

// start returns where a packet of FROM begins.
func (c *capture) start(captured frame.Frame, first *frame.Frame) (follow.Start, error) {
	start := follow.Start{Packet: captured.Packet, Size: captured.Size, ID: captured.ID, Headless: captured.Headless, MayFragment: captured.MayFragment}
	if c.tap.node == nil {
		var err error
		if start.Network, err = c.tap.network(captured.Packet); err != nil {
			return start, err
		}
	} else {
		start.Node, start.InPort = c.tap.node.Name, c.tap.port.Name
	}
	if captured.Quoted != nil {
		start.Quoted, start.QuotedID = &captured.Quoted.Packet, captured.Quoted.ID
	}
	if first != nil {
		start.First, start.FirstSize = &first.Packet, first.Size
	}
	return start, nil
}

// followSent follows a packet of FROM, unless one like it has been followed in the same state.
func (c *capture) followSent(ctx context.Context, endpoint names.Endpoint, captured frame.Frame, first *frame.Frame) error {
	offloaded := c.segment(&captured)
	conv := c.conversation(connectionOf(captured, first))
	text := captured.Packet.Input()
	question := conv.question(text, captured, first)
	if known := conv.known(question, captured.Size); known != nil {
		c.count(known.sent, captured.Size)
		return nil
	}
	if len(c.Sent) == maxCaptured {
		return fmt.Errorf("more than %d different packets: select some with a filter of tcpdump", maxCaptured)
	}
	made := &Sent{Packets: 1, Flow: text, MinSize: captured.Size, MaxSize: captured.Size}
	if endpoint.LogicalPort != c.tap.from.LogicalPort {
		made.From = endpoint.Name
	}
	start, err := c.start(captured, first)
	var result *answer.Answer
	if err == nil {
		result, err = c.answer(ctx, conv, start, offloaded)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		made.Error = err.Error()
	case c.to != nil && !c.isFor(captured.Packet, result):
		conv.remember(question, captured.Size, nil)
		c.count(nil, captured.Size)
		return nil
	default:
		made.Answer = result
	}
	conv.remember(question, captured.Size, c.add(made))
	return nil
}

// add adds a packet with its answer, and returns an equal one that was added before, or itself.
func (c *capture) add(added *Sent) *Sent {
	key := added.From + "\x00" + added.Flow
	for _, known := range c.alike[key] {
		if known.Error == added.Error && isSame(known.Answer, added.Answer) {
			c.count(known, added.MinSize)
			return known
		}
	}
	c.alike[key] = append(c.alike[key], added)
	c.Sent = append(c.Sent, added)
	return added
}

// isSame reports whether two answers about a packet have the same result. The size of the
// packet may differ, which the rule of a drop names, and the state of its connection.
func isSame(first, second *answer.Answer) bool {
	if first == nil || second == nil {
		return first == second
	}
	result := func(of *answer.Answer) []any {
		if of.Drop == nil || of.Drop.Reason != string(rules.MTU) {
			return []any{of.Verdict, of.Missing, of.Outcomes, of.Generated, of.Drop}
		}
		drop := *of.Drop
		drop.Rule = ""
		return []any{of.Verdict, of.Missing, of.Outcomes, of.Generated, drop}
	}
	return reflect.DeepEqual(result(first), result(second))
}

// count counts one more packet like sent, which was answered before. A packet that does not go to
// TO has a nil sent.
func (c *capture) count(sent *Sent, size int) {
	if sent == nil {
		c.Elsewhere++
		return
	}
	sent.Packets++
	sent.MinSize, sent.MaxSize = min(sent.MinSize, size), max(sent.MaxSize, size)
}

// segment gives a frame that is larger than its sender's MTU the size of the largest segment
// that its interface may make of it, and returns what that assumes; "" for other frames.
func (c *capture) segment(captured *frame.Frame) string {
	if c.tap.node == nil {
		return "" // the MTU of what is outside is not known
	}
	largest := follow.MaxFrame(captured.Packet, c.tap.port.MTU)
	if number, _ := captured.Packet.Protocol(); number != flow.TCP || c.tap.port.MTU == 0 || captured.Size <= largest {
		return ""
	}
	text := fmt.Sprintf("the frame is larger than the MTU of port %s, %d: TCP segmentation offload makes segments of at most that size of it", c.tap.port.Name, c.tap.port.MTU)
	captured.Size = largest
	return text
}

// isFor reports whether a packet is for TO: it is addressed to it, to an address that leads
// to it, or it comes out there.
func (c *capture) isFor(packet flow.Packet, result *answer.Answer) bool {
	if hasAddress(packet, *c.to) || slices.ContainsFunc(result.Outcomes, func(o answer.Outcome) bool { return o.Destination }) {
		return true
	}
	for _, endpoint := range c.findAll(destination(packet)) {
		for _, ip := range c.to.IPs {
			var back flow.Packet
			back.Set("nw_dst", ip.String())
			if isBackend(back, endpoint) {
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
		var asked *inquiry
		result, err := c.askUndisturbed(func() (*answer.Answer, error) {
			where := start.Node + " " + start.InPort
			if c.tap.node == nil {
				where = c.tap.from.Name
			}
			asked = c.inquire(where+": "+start.Packet.Input(), c.arrived)
			if assumed != "" {
				asked.assume(assumed)
			}
			if conv.cut {
				asked.assume(fmt.Sprintf("the packets before it took one of the first %d ways that they may have taken", maxCourses))
			}
			return asked.answer, asked.follow(ctx, start)
		})
		if err != nil {
			return nil, err
		}
		if err := c.doubt(ctx, conv, start, asked); err != nil {
			return nil, err
		}
		answers = append(answers, alternative{result, was.choice})
		courses = append(courses, was.after(asked.root, asked.state)...)
		c.learned = c.learned.WithLearned(asked.state)
	}
	c.moveOn(conv, courses)
	return merge(answers), nil
}

// alternative is the answer to a packet if an earlier one of its connection took one of
// several ways.
type alternative struct {
	*answer.Answer
	choice string
}

// merge returns the answer about a packet for which one of several answers is right. Where they
// differ, it has the outcomes of all.
func merge(answers []alternative) *answer.Answer {
	for _, choice := range answers {
		if choice.Verdict == answer.Undetermined {
			return choice.Answer
		}
	}
	first, verdict := answers[0].Answer, answers[0].Verdict
	differs := func(choice alternative) bool { return choice.Verdict != verdict }
	at := slices.IndexFunc(answers, differs)
	elsewhere := func(choice alternative) bool { return !reflect.DeepEqual(choice.Outcomes, first.Outcomes) }
	switch {
	case at < 0 && !slices.ContainsFunc(answers, elsewhere):
		return first
	case at >= 0 && first.Verdict == answer.Reachable:
		first = answers[at].Answer // its path shows where the packet is lost
	}
	mixed := *first
	mixed.Outcomes, mixed.Path = nil, slices.Clone(first.Path)
	if at >= 0 {
		mixed.Verdict = answer.Ambiguous
	}
	mixed.Trust.Nodes = slices.Clone(first.Trust.Nodes)
	for _, choice := range answers {
		for _, outcome := range choice.Outcomes {
			outcome.Choice = cmp.Or(outcome.Choice, choice.choice)
			mixed.Outcomes = append(mixed.Outcomes, outcome)
		}
		for _, n := range choice.Trust.Nodes {
			mixed.Trust.Add(n)
		}
		for i := range mixed.Path {
			if choice.Answer == first {
				mixed.Path[i].Choice = cmp.Or(mixed.Path[i].Choice, choice.choice)
			}
		}
	}
	return &mixed
}
