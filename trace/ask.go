package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
	"ovs-offline/trace/rules"
)

// Between is a question with names: can From reach To?
type Between struct {
	From, To string
	Network  string // of both, where a name is ambiguous; "" for any
	names.Question
	Size int // of the frame in bytes, 0 for one that fits everywhere
}

// Ask answers whether one endpoint reaches another, and whether the reply arrives. The
// error is a *names.AmbiguousError or *names.UnknownError for a name that no single
// endpoint has, and a *names.ProtocolError for a service that lacks the protocol.
func (s *Session) Ask(ctx context.Context, b Between) (*answer.Answer, error) {
	return s.whole(func() (*answer.Answer, error) { return s.ask(ctx, b) })
}

func (s *Session) ask(ctx context.Context, b Between) (*answer.Answer, error) {
	q := b.Question
	var err error
	if q.From, err = s.names.Find(b.From, names.Filter{Network: b.Network}); err != nil {
		return nil, err
	}
	if q.To, q.DstPort, err = s.destination(b); err != nil {
		return nil, err
	}
	first, err := s.names.First(q)
	if err != nil {
		return nil, err
	}
	start, err := s.start(first, b.Size)
	if err != nil {
		return nil, err
	}
	w := s.writer(fmt.Sprintf("%s -> %s: %s", q.From.Name, q.To.Name, first.Flow), at(q.To))
	for _, text := range first.Assumed {
		w.assume(text)
	}
	if err := w.follow(ctx, start); err != nil {
		return nil, err
	}
	if first.Unresolved.IsValid() && len(w.answer.Path) > 0 {
		w.unresolved(first)
		return w.answer, nil
	}
	return w.answer, w.reply(ctx, q.From)
}

// destination returns the endpoint that a packet is sent to, and the port that follows its
// name, 0 for none.
func (s *Session) destination(b Between) (names.Endpoint, uint16, error) {
	filter := names.Filter{Network: b.Network, Protocol: b.Protocol}
	e, err := s.names.Find(b.To, filter)
	at := strings.LastIndexByte(b.To, ':')
	var protocol *names.ProtocolError
	if err == nil || at < 0 || errors.As(err, &protocol) {
		return e, b.DstPort, err
	}
	port, badPort := strconv.ParseUint(b.To[at+1:], 10, 16)
	named, notFound := s.names.Find(strings.Trim(b.To[:at], "[]"), filter)
	if badPort == nil && errors.As(notFound, &protocol) {
		return e, 0, notFound
	}
	if badPort != nil || notFound != nil {
		return e, 0, err
	}
	return named, uint16(port), nil
}

// Flow answers what becomes of a packet that enters a bridge of a node. The text is the
// bridge and a flow with in_port, as ofproto/trace takes them.
func (s *Session) Flow(ctx context.Context, node, text string, size int) (*answer.Answer, error) {
	return s.whole(func() (*answer.Answer, error) { return s.flow(ctx, node, text, size) })
}

func (s *Session) flow(ctx context.Context, node, text string, size int) (*answer.Answer, error) {
	if node == "" && len(s.order) == 1 {
		node = s.order[0]
	}
	n := s.nodes[node]
	if n == nil {
		return nil, fmt.Errorf("%w: name the node that the flow enters (--node): one of %s", ErrQuestion, strings.Join(s.order, ", "))
	}
	bridge, fields, _ := strings.Cut(strings.TrimSpace(text), " ")
	p, err := flow.Parse(fields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuestion, err)
	}
	in := p.Get("in_port")
	port, ok := n.Port(in)
	if number, err := strconv.Atoi(in); err == nil {
		port, ok = n.Numbered(bridge, number)
	}
	if !ok {
		return nil, fmt.Errorf("%w: the flow has to begin with a bridge of node %s and in_port=PORT: %q", ErrQuestion, node, text)
	}
	p.Delete("in_port")
	start := follow.Start{Node: node, Bridge: bridge, InPort: port.Name, Packet: p, Size: size}
	w := s.writer(fmt.Sprintf("%s %s", node, text), anywhere)
	return w.answer, w.follow(ctx, start)
}

// ErrQuestion is wrapped by the error of a question that can't be asked.
var ErrQuestion = errors.New("no such question")

func (s *Session) writer(question string, arrived func(*follow.Hop, follow.Branch) bool) *writer {
	a := &answer.Answer{Question: question, Outcomes: []answer.Outcome{}, Path: []answer.Hop{}, Trust: answer.Trust{Nodes: []answer.Node{}}}
	return &writer{Session: s, answer: a, arrived: arrived, seen: map[string]bool{}, taught: map[taught]bool{}}
}

// start returns where the first packet of a question begins.
func (s *Session) start(first names.Packet, size int) (follow.Start, error) {
	p, err := flow.Parse(first.Flow)
	start := follow.Start{Network: first.PhysicalNetwork, Packet: p, Size: size}
	if err != nil || start.Network != "" {
		return start, err
	}
	start.Node = first.Nodes[0]
	port, ok := s.nodes[start.Node].Attached(first.Port)
	if !ok {
		return start, fmt.Errorf("node %s has no interface with iface-id %s", start.Node, first.Port)
	}
	start.InPort = port.Name
	return start, nil
}

// follow follows a packet, and writes verdict, path and drop.
func (w *writer) follow(ctx context.Context, start follow.Start) error {
	hop, state, err := w.tracer.Packet(ctx, start)
	if err != nil {
		return err
	}
	w.state = state
	w.hop(hop, way{from: -1})
	for h, b := range hop.Ends() {
		if w.arrived(h, b) {
			w.arrivals = append(w.arrivals, arrival{h, b})
		}
	}
	if w.err != nil {
		return w.err
	}
	w.answer.Verdict = w.judge(hop).verdict()
	if w.answer.Verdict != answer.Undetermined {
		w.answer.Missing = nil
	}
	if w.answer.Verdict != answer.Reachable && !(w.answer.Verdict == answer.Undetermined && w.left) {
		w.answer.Drop = w.deciding()
	}
	w.trust()
	return nil
}

// trust lists the nodes on the path.
func (w *writer) trust() {
	for _, h := range w.answer.Path {
		on := func(n answer.Node) bool { return n.Name == h.Node }
		if !slices.ContainsFunc(w.answer.Trust.Nodes, on) {
			w.answer.Trust.Nodes = append(w.answer.Trust.Nodes, w.nodes[h.Node].trust)
		}
	}
}

// unresolved turns the answer of a neighbour request that leads to no answer into that of
// the packet, which the sender never sends.
func (w *writer) unresolved(first names.Packet) {
	w.answer.Verdict = answer.Unreachable
	d := answer.Drop{Reason: string(rules.Unresolved)}
	if found := w.deciding(); found != nil {
		d = *found
		d.Reason = string(rules.Unresolved)
	} else if len(w.answer.Path) > 0 {
		d.Place = w.answer.Path[0].Place
	}
	d.Rule = fmt.Sprintf("no port and no router of its switch has the address %s", first.Unresolved)
	w.answer.Drop = &d
}

// anywhere accepts every port that a packet comes out of.
func anywhere(_ *follow.Hop, b follow.Branch) bool { return b.Kind == follow.Delivered }

// at returns a function that reports whether an end is at an endpoint.
func at(e names.Endpoint) func(*follow.Hop, follow.Branch) bool {
	return func(_ *follow.Hop, b follow.Branch) bool {
		if b.Kind != follow.Delivered || b.Port == nil {
			return false
		}
		switch e.Kind {
		case names.External:
			return len(b.Networks) > 0 && hasAddress(b.Packet, e)
		case names.Service:
			// The port of a bridge itself leads to the node, which may be a backend.
			return (b.Port.IfaceID != "" || b.Port.Name == b.Port.Bridge) && isBackend(b.Packet, e)
		case names.FloatingIP:
			return b.Port.IfaceID != "" && (isBackend(b.Packet, e) || hasAddress(b.Packet, e))
		case names.RouterPort:
			return b.Port.IfaceID != "" && (b.Port.IfaceID == e.LogicalPort || hasAddress(b.Packet, e))
		}
		return b.Port.IfaceID == cmp.Or(e.Parent, e.LogicalPort) && (e.Tag == 0 || b.Packet.Get("dl_vlan") == fmt.Sprint(e.Tag))
	}
}

func destination(p flow.Packet) string {
	if a := p.Get("ipv6_dst"); a != "" {
		return a
	}
	return p.Get("nw_dst")
}

func hasAddress(p flow.Packet, e names.Endpoint) bool {
	for _, ip := range e.IPs {
		if ip.String() == destination(p) {
			return true
		}
	}
	return false
}

// isBackend reports whether a packet is to a backend of a service.
func isBackend(p flow.Packet, e names.Endpoint) bool {
	for _, backend := range e.Backends {
		address := backend
		if i := strings.LastIndexByte(backend, ':'); i >= 0 && (strings.Contains(backend, "]:") || strings.Count(backend, ":") == 1) {
			address = backend[:i]
		}
		if strings.Trim(address, "[]") == destination(p) {
			return true
		}
	}
	return false
}
