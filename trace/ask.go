package trace

import (
	"context"
	"fmt"
	"slices"
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
// endpoint has.
func (s *Session) Ask(ctx context.Context, b Between) (*answer.Answer, error) {
	q := b.Question
	var err error
	if q.From, err = s.names.Find(b.From, names.Filter{Network: b.Network}); err != nil {
		return nil, err
	}
	if q.To, err = s.names.Find(b.To, names.Filter{Network: b.Network, Protocol: q.Protocol}); err != nil {
		return nil, err
	}
	first, err := s.names.First(q)
	if err != nil {
		return nil, err
	}
	packet, err := flow.Parse(first.Flow)
	if err != nil {
		return nil, err
	}
	w := s.writer(fmt.Sprintf("%s -> %s: %s", q.From.Name, q.To.Name, first.Flow), to(q.To))
	for _, text := range first.Assumed {
		w.assume(text)
	}
	starts, err := s.starts(first, packet, b.Size)
	if err != nil {
		return nil, err
	}
	if err := w.follow(ctx, starts); err != nil {
		return nil, err
	}
	if first.Unresolved.IsValid() {
		w.unresolved(first)
		return w.answer, nil
	}
	return w.answer, w.reply(ctx, q.From)
}

// Flow answers what becomes of a packet that enters a port of a node.
func (s *Session) Flow(ctx context.Context, start follow.Start) (*answer.Answer, error) {
	w := s.writer(fmt.Sprintf("%s %s: %s", start.Node, start.InPort, start.Packet.Input()), anywhere)
	return w.answer, w.follow(ctx, []follow.Start{start})
}

func (s *Session) writer(question string, arrived func(*follow.Hop, follow.Branch) bool) *writer {
	a := &answer.Answer{Question: question, Outcomes: []answer.Outcome{}, Path: []answer.Hop{}}
	return &writer{Session: s, answer: a, arrived: arrived, seen: map[string]bool{}}
}

// starts returns where the first packet may enter: a packet from outside reaches every
// node that is joined to the physical network.
func (s *Session) starts(first names.Packet, p flow.Packet, size int) ([]follow.Start, error) {
	var starts []follow.Start
	for _, name := range first.Nodes {
		n := s.nodes[name]
		if n == nil {
			return nil, fmt.Errorf("no node %q", name)
		}
		port, ok := n.Attached(first.Port)
		if first.Port == "" {
			uplinks := n.Uplinks(first.PhysicalNetwork)
			if len(uplinks) == 0 {
				continue
			}
			port, ok = uplinks[0], true
		}
		if !ok {
			return nil, fmt.Errorf("node %s has no interface with iface-id %s", name, first.Port)
		}
		starts = append(starts, follow.Start{Node: name, InPort: port.Name, Packet: p.Clone(), Size: size})
	}
	if len(starts) == 0 {
		return nil, fmt.Errorf("no node has a port in the physical network %s", first.PhysicalNetwork)
	}
	return starts, nil
}

// arrival is an end at the destination, for the reply.
type arrival struct {
	hop    *follow.Hop
	branch follow.Branch
}

// follow follows the packets from all starts, and writes verdict, path and drop.
func (w *writer) follow(ctx context.Context, starts []follow.Start) error {
	all := lost
	for _, start := range starts {
		hop, _, err := w.tracer.Packet(ctx, start)
		if err != nil {
			return err
		}
		w.hop(hop, way{from: -1})
		all = both(all, judge(hop, w.arrived))
		hop.Ends(func(h *follow.Hop, b follow.Branch) bool {
			if w.arrived(h, b) {
				w.arrivals = append(w.arrivals, arrival{h, b})
			}
			return true
		})
	}
	if w.err != nil {
		return w.err
	}
	w.answer.Verdict = all.verdict()
	if w.answer.Verdict != answer.Undetermined {
		w.answer.Missing = nil
	}
	if w.answer.Verdict != answer.Reachable {
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

// reply follows the reply to the packet that arrived first.
func (w *writer) reply(ctx context.Context, from names.Endpoint) error {
	if w.answer.Verdict != answer.Reachable || len(w.arrivals) == 0 {
		return nil
	}
	at := w.arrivals[0]
	if at.branch.Port == nil {
		return nil
	}
	p, err := reversed(at.branch.Packet)
	if err != nil {
		w.assume(fmt.Sprintf("the reply is not followed: %v", err))
		return nil
	}
	back := w.writer(fmt.Sprintf("the reply: %s", p.Input()), to(from))
	start := follow.Start{Node: at.hop.Node, InPort: at.branch.Port.Name, Packet: p, ID: at.branch.ID, State: at.branch.State}
	if err := back.follow(ctx, []follow.Start{start}); err != nil {
		return err
	}
	w.answer.Return = back.answer
	if back.answer.Verdict == answer.Unreachable {
		w.answer.Verdict = answer.OneWay
	}
	return nil
}

// reversed returns the reply to a packet.
func reversed(p flow.Packet) (flow.Packet, error) {
	r := p.Headers()
	for _, pair := range [][2]string{{"dl_src", "dl_dst"}, {"nw_src", "nw_dst"}, {"ipv6_src", "ipv6_dst"}, {"tp_src", "tp_dst"}} {
		if r.Has(pair[0]) || r.Has(pair[1]) {
			a, b := r.Get(pair[0]), r.Get(pair[1])
			r.Set(pair[0], b)
			r.Set(pair[1], a)
		}
	}
	if r.Has("nw_ttl") {
		r.Set("nw_ttl", "64")
	}
	r.Delete("tcp_flags")
	if kind := r.Get("icmp_type"); kind != "" {
		reply, ok := map[string]string{"8": "0", "128": "129"}[kind]
		if !ok {
			return r, fmt.Errorf("ICMP type %s has no reply", kind)
		}
		r.Set("icmp_type", reply)
	}
	if r.Has("arp_op") {
		return r, fmt.Errorf("it is ARP")
	}
	return r, nil
}

// anywhere accepts every port that a packet comes out of.
func anywhere(_ *follow.Hop, b follow.Branch) bool { return b.Kind == follow.Delivered }

// to returns a function that reports whether an end is at an endpoint.
func to(e names.Endpoint) func(*follow.Hop, follow.Branch) bool {
	return func(_ *follow.Hop, b follow.Branch) bool {
		if b.Kind != follow.Delivered || b.Port == nil {
			return false
		}
		switch e.Kind {
		case names.External:
			return len(b.Networks) > 0 && hasAddress(b.Packet, e)
		case names.Service:
			return b.Port.IfaceID != "" && isBackend(b.Packet, e)
		case names.RouterPort, names.FloatingIP:
			return b.Port.IfaceID != "" && (b.Port.IfaceID == e.LogicalPort || hasAddress(b.Packet, e))
		}
		if e.Parent != "" {
			return b.Port.IfaceID == e.Parent && b.Packet.Get("dl_vlan") == fmt.Sprint(e.Tag)
		}
		return b.Port.IfaceID == e.LogicalPort
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
