package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/conntrack"
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
	err := CheckSize(b.Size)
	if err != nil {
		return nil, err
	}
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
	w.answer.Family = first.Family
	for _, text := range first.Assumed {
		w.assume(text)
	}
	if strings.HasPrefix(b.To, external) && q.To.Kind != names.External {
		w.assume(fmt.Sprintf("%s is a %s in the databases, and is asked as that", q.To.Name, q.To.Kind))
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

// external begins the names of addresses outside.
const external = "external/"

// destination returns the endpoint that a packet is sent to, and the port that follows its
// name, 0 for none.
func (s *Session) destination(b Between) (names.Endpoint, uint16, error) {
	filter := names.Filter{Network: b.Network, Protocol: b.Protocol}
	if address, outside := strings.CutPrefix(b.To, external); outside {
		inside := b
		inside.To = address
		if e, port, ok, err := s.takenForOutside(inside, filter); ok || err != nil {
			return e, port, err
		}
	}
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

// takenForOutside returns the endpoint of OVN that has an address which was asked for as one
// outside, and the port that follows the address; ok is false if there is none.
func (s *Session) takenForOutside(b Between, filter names.Filter) (e names.Endpoint, port uint16, ok bool, err error) {
	e, ok, err = s.names.Outside(b.To, filter)
	if several := new(*names.AmbiguousError); errors.As(err, several) && b.DstPort != 0 {
		if one, found, _ := s.names.Outside(net.JoinHostPort(b.To, fmt.Sprint(b.DstPort)), filter); found {
			return one, b.DstPort, true, nil
		}
	}
	if at, bad := netip.ParseAddrPort(b.To); bad == nil && !ok && err == nil {
		e, ok, err = s.names.Outside(at.Addr().String(), filter)
		return e, at.Port(), ok, err
	}
	return e, b.DstPort, ok, err
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
	if err := CheckSize(size); err != nil {
		return nil, err
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
	w := s.writer(fmt.Sprintf("%s %s", node, text), s.comesOut)
	w.answer.Family = familyOf(p)
	if err := w.follow(ctx, start); err != nil {
		return nil, err
	}
	return w.answer, s.unquoted(ctx, start, w)
}

// unquoted answers the question about an ICMP error if the answer does not depend on the
// packet inside, which a flow does not have: whether that belongs to a connection or not.
func (s *Session) unquoted(ctx context.Context, start follow.Start, w *writer) error {
	t, ok := conntrack.TupleOf(start.Packet, 0)
	if !ok || !t.IsError() || w.answer.Verdict != answer.Undetermined {
		return nil
	}
	list, err := s.inStates(ctx, start, w.arrived, []conntrack.Flags{{Inv: true}, {Rel: true}, {Rel: true, Rpl: true}})
	differs := func(a *answer.Answer) bool {
		return a.Verdict == answer.Undetermined || a.Verdict != list[0].Verdict
	}
	if err != nil || slices.ContainsFunc(list, differs) {
		return err
	}
	list[0].Question, list[0].Family = w.answer.Question, w.answer.Family
	list[0].Trust.Assumed = append(list[0].Trust.Assumed, "the packet inside the ICMP error is not known: the verdict is the same whether it belongs to a connection or not")
	*w.answer = *list[0]
	return nil
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
	w.root, w.state, w.start = hop, state, start
	if err := w.checkBucket(hop); err != nil {
		return err
	}
	w.answer.Packet, w.answer.Size = start.Packet.Words(), start.Size
	w.hop(hop, way{from: -1})
	w.answered(hop)
	if w.err != nil {
		return w.err
	}
	w.answer.Verdict = w.judgeAll(hop).verdict()
	if w.answer.Verdict == answer.Unreachable && w.losesAnswer(hop) {
		w.answer.Verdict = answer.OneWay
	}
	if w.answer.Verdict != answer.Undetermined {
		w.answer.Missing = nil
	}
	if w.answer.Verdict != answer.Reachable && !(w.answer.Verdict == answer.Undetermined && w.left) {
		w.answer.Drop = w.deciding()
	}
	if w.err != nil {
		return w.err
	}
	w.addHolds()
	w.trust()
	return nil
}

// checkBucket returns an error if the options select a bucket that no group on the way of the
// packet has. A reply may meet other groups.
func (w *writer) checkBucket(h *follow.Hop) error {
	if w.options.Bucket == "" || w.isReply {
		return nil
	}
	met := bucketsOf(h)
	isIt := func(b follow.Branch) bool { return b.Bucket == w.options.Bucket || b.Backend == w.options.Bucket }
	if len(met) == 0 || slices.ContainsFunc(met, isIt) {
		return nil
	}
	var ids []string
	for _, b := range met {
		text := b.Bucket
		if b.Backend != "" {
			text += " (" + b.Backend + ")"
		}
		if !slices.Contains(ids, text) {
			ids = append(ids, text)
		}
	}
	return fmt.Errorf("%w: no group on the way of the packet has the bucket %s: they have %s", ErrQuestion, w.options.Bucket, strings.Join(ids, ", "))
}

// bucketsOf returns the branches of a hop's tree that took a bucket.
func bucketsOf(h *follow.Hop) []follow.Branch {
	var all []follow.Branch
	for _, b := range h.Branches {
		if b.Bucket != "" {
			all = append(all, b)
		}
		if b.Next != nil {
			all = append(all, bucketsOf(b.Next)...)
		}
	}
	return all
}

// trust lists the nodes on the path.
func (w *writer) trust() {
	for _, h := range w.answer.Path {
		w.trusts(w.nodes[h.Node].trust)
	}
}

// trusts adds a node, once.
func (w *writer) trusts(n answer.Node) {
	isListed := func(listed answer.Node) bool { return listed.Name == n.Name }
	if !slices.ContainsFunc(w.answer.Trust.Nodes, isListed) {
		w.answer.Trust.Nodes = append(w.answer.Trust.Nodes, n)
	}
}

// unresolved turns the answer of a neighbour request that leads to no answer into that of
// the packet, which the sender never sends. What is on the network and not in the databases
// may answer.
func (w *writer) unresolved(first names.Packet) {
	if first.Vacant == "" {
		w.answer.Verdict, w.answer.Answered, w.answer.Drop = answer.Undetermined, "", nil
		w.answer.Missing = slices.Insert(w.answer.Missing, 0, fmt.Sprintf("no port and no router in the databases has the address %s, and not all that is on its network is in them: "+
			"whether something answers the request for its MAC address is not known", first.Unresolved))
		return
	}
	w.answer.Verdict = answer.Unreachable
	d := answer.Drop{Reason: string(rules.Unresolved)}
	if found := w.deciding(); found != nil {
		d = *found
		d.Reason = string(rules.Unresolved)
	} else if len(w.answer.Path) > 0 {
		d.Place = w.answer.Path[0].Place
	}
	d.Rule = fmt.Sprintf("no port and no router of %s has the address %s", first.Vacant, first.Unresolved)
	w.answer.Drop = &d
}

// anywhere accepts every port that a packet comes out of.
func anywhere(_ *follow.Hop, b follow.Branch) bool { return b.Kind == follow.Delivered }

// comesOut accepts every port that a packet comes out of. Where the databases show which ports
// have the address that it is sent to, it accepts no physical network and no other port of
// theirs: what is there may forward the packet. The management port of a node of
// ovn-kubernetes leads to the node, which has the address of its gateway router too.
func (s *Session) comesOut(h *follow.Hop, b follow.Branch) bool {
	if !anywhere(h, b) || b.Port == nil {
		return anywhere(h, b)
	}
	ip, err := netip.ParseAddr(destination(b.Packet))
	holders := s.names.WithIP(ip)
	if err != nil || len(holders) == 0 {
		return true
	}
	e, known := s.receiver(b)
	ofNode := func(o names.Endpoint) bool {
		return e.Kind == names.NodePort && o.Kind == names.RouterPort && o.Node == h.Node
	}
	return len(b.Networks) == 0 && (!known || hasAddress(b.Packet, e) || slices.ContainsFunc(holders, ofNode))
}

// familyOf returns 4 or 6 for an IP packet, 0 for another one.
func familyOf(p flow.Packet) int {
	src, _, ok := p.Addresses()
	switch {
	case !ok:
		return 0
	case src.Is4():
		return 4
	}
	return 6
}

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
			// The bridge of ovn-kubernetes's nodes has the address of their gateway router.
			return (b.Port.IfaceID != "" || b.Port.Name == b.Port.Bridge) && (b.Port.IfaceID == e.LogicalPort || hasAddress(b.Packet, e))
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
