package trace

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/frame"
	"ovs-offline/trace/names"
)

// received follows a packet that FROM received, for the state of its connection. Where it
// began is not in the capture: each possible beginning is tried, and the right one is that
// from which the packet comes out at FROM as it was captured.
func (c *capture) received(ctx context.Context, e names.Endpoint, f frame.Frame, first *frame.Frame) error {
	key := connectionOf(f, first)
	if key == "" || f.Quoted != nil || f.Headless {
		return nil // it has no connection of its own
	}
	conv := c.conversation(key)
	question := "received " + conv.question(f.Packet.Input(), f, first)
	if conv.known(question, f.Size) != nil {
		return nil
	}
	var courses []course
	for _, was := range conv.courses {
		found, err := c.beginnings(ctx, was, e, f, first)
		if err != nil {
			return err
		}
		courses = append(courses, found...)
	}
	if len(courses) == 0 {
		conv.answers = true
		return nil
	}
	c.moveOn(conv, courses)
	if question == "received "+conv.question(f.Packet.Input(), f, first) {
		conv.remember(question, f.Size, nil)
	}
	return nil
}

// beginnings returns what a packet that was received left, after the packets before it.
func (c *capture) beginnings(ctx context.Context, was course, e names.Endpoint, f frame.Frame, first *frame.Frame) ([]course, error) {
	for _, a := range was.arrivals {
		if c.isHere(a.hop, a.branch) && sameHeaders(a.branch.Packet, f.Packet) {
			return []course{was}, nil // FROM sent it to itself
		}
	}
	for start := range c.starts(was, e, f) {
		start.Size, start.State = f.Size, was.state.WithLearned(c.learned)
		if first != nil {
			begun := start.Packet.Datagram(first.Packet).Fragment("first")
			start.First, start.FirstSize = &begun, first.Size
		}
		hop, state, err := c.tracer.Packet(ctx, start)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // no packet can begin there
		}
		var found []course
		for _, o := range hop.Outcomes(state) {
			known := func(c course) bool { return c.state == o.State }
			if c.isHere(o.Hop, o.Branch) && sameHeaders(o.Branch.Packet, f.Packet) && !slices.ContainsFunc(found, known) {
				found = append(found, course{o.State, was.choice, was.arrivals})
			}
		}
		if len(found) > 0 {
			c.learned = c.learned.WithLearned(state)
			return found, nil
		}
	}
	return nil, nil
}

// starts yields where a packet that FROM received may have begun: where a packet of FROM
// arrived that it may answer, at its sender on the same network, or at one from which it was
// routed or translated.
func (c *capture) starts(was course, e names.Endpoint, f frame.Frame) iter.Seq[follow.Start] {
	return func(yield func(follow.Start) bool) {
		w := c.writer("", c.arrived)
		for _, a := range was.arrivals {
			if start, ok := w.answerTo(a); ok {
				start.Packet = withFlags(start.Packet, f.Packet)
				if !yield(start) {
					return
				}
			}
		}
		for _, q := range c.questions(e, f) {
			if start, err := c.begin(q, f); err == nil && !yield(start) {
				return
			}
		}
	}
}

// withFlags gives a packet the TCP flags of another.
func withFlags(p, from flow.Packet) flow.Packet {
	if from.Has("tcp_flags") {
		p.Set("tcp_flags", from.Get("tcp_flags"))
	}
	return p
}

// questions returns from where and to what a packet may have been sent that FROM received.
func (c *capture) questions(e names.Endpoint, f frame.Frame) []names.Question {
	src, dst, ok := f.Packet.Addresses()
	if !ok {
		return nil
	}
	var senders []names.Endpoint
	for _, s := range c.named(src.String()) {
		if s.Node != "" && (s.Kind == names.Pod || s.Kind == names.Port || s.Kind == names.NodePort) {
			s.IPs = []netip.Addr{src}
			senders = append(senders, s)
		}
	}
	if len(senders) == 0 {
		senders = []names.Endpoint{{Kind: names.External, Name: "external/" + src.String(), IPs: []netip.Addr{src}}}
	}
	e.IPs = []netip.Addr{dst}
	targets := []names.Endpoint{e}
	for _, s := range c.balanced(f.Packet, dst) {
		if slices.ContainsFunc(s.IPs, func(ip netip.Addr) bool { return ip.Is4() == dst.Is4() }) {
			targets = append(targets, s)
		}
	}
	var list []names.Question
	for _, from := range senders {
		for _, to := range targets {
			list = append(list, names.Question{From: from, To: to})
		}
	}
	return list
}

// named returns the endpoints with a name or an address.
func (c *capture) named(name string) []names.Endpoint {
	e, err := c.names.Find(name, names.Filter{})
	if err == nil {
		return []names.Endpoint{e}
	}
	if several, ok := errors.AsType[*names.AmbiguousError](err); ok {
		return several.Candidates
	}
	return nil
}

// balanced returns the services with a backend to which a packet is addressed.
func (c *capture) balanced(p flow.Packet, dst netip.Addr) []names.Endpoint {
	if c.services == nil {
		c.services = map[string][]names.Endpoint{}
		for _, s := range c.names.Services() {
			for _, backend := range s.Backends {
				c.services[backend] = append(c.services[backend], s)
			}
		}
	}
	return slices.Concat(c.services[net.JoinHostPort(dst.String(), p.Get("tp_dst"))], c.services[dst.String()])
}

// begin returns the packet that was captured as the sender of a question sends it.
func (c *capture) begin(q names.Question, f frame.Frame) (follow.Start, error) {
	asked, err := c.names.First(q)
	if err != nil {
		return follow.Start{}, err
	}
	if asked.Unresolved.IsValid() {
		return follow.Start{}, fmt.Errorf("no port has the address %s", asked.Unresolved)
	}
	start, err := c.Session.start(asked, f.Size)
	if err != nil {
		return start, err
	}
	p := f.Packet.Clone()
	for p.IsTagged() {
		p.PopVLAN()
	}
	captured, direct := p.Get("dl_src"), start.Packet.Get("dl_dst") == p.Get("dl_dst")
	for _, name := range []string{"dl_src", "dl_dst", "nw_dst", "ipv6_dst"} {
		if start.Packet.Has(name) {
			p.Set(name, start.Packet.Get(name))
		}
	}
	if direct && q.From.Kind == names.External {
		p.Set("dl_src", captured)
	}
	p.Set("nw_ttl", "64")
	if q.To.Port != 0 {
		p.Set("tp_dst", fmt.Sprint(q.To.Port))
	}
	if start.Packet.IsTagged() {
		p.PushVLAN(start.Packet.Get("dl_vlan"), start.Packet.Get("dl_vlan_pcp"))
	}
	start.Packet, start.ID, start.Headless = p, f.ID, f.Headless
	return start, nil
}
