package trace

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/frame"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
)

// followReceived follows a packet that FROM received, for the state of its connection. Where it
// began is not in the capture: each possible beginning is tried, and the right one is the
// beginning from which the packet comes out at FROM as it was captured.
func (c *capture) followReceived(ctx context.Context, endpoint names.Endpoint, captured frame.Frame, first *frame.Frame) error {
	key := connectionOf(captured, first)
	if key == "" || captured.Quoted != nil || captured.Headless {
		return nil // it has no connection of its own
	}
	conv := c.conversation(key)
	question := "received " + conv.question(captured.Packet.Input(), captured, first)
	if conv.known(question, captured.Size) != nil {
		return nil
	}
	var courses []course
	for _, was := range conv.courses {
		found, err := c.beginnings(ctx, was, endpoint, captured, first)
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
	if question == "received "+conv.question(captured.Packet.Input(), captured, first) {
		conv.remember(question, captured.Size, nil)
	}
	return nil
}

// beginnings returns what a packet that was received left, after the packets before it.
func (c *capture) beginnings(ctx context.Context, was course, endpoint names.Endpoint, captured frame.Frame, first *frame.Frame) ([]course, error) {
	for _, arrived := range was.arrivals {
		if c.isHere(arrived.hop, arrived.branch) && sameHeaders(arrived.branch.Packet, captured.Packet) {
			return []course{was}, nil // FROM sent it to itself
		}
	}
	for start := range c.starts(was, endpoint, captured) {
		start.Size, start.State = captured.Size, was.state.WithLearned(c.learned)
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
		for _, outcome := range hop.Outcomes(state) {
			known := func(c course) bool { return c.state == outcome.State }
			if c.isHere(outcome.Hop, outcome.Branch) && sameHeaders(outcome.Branch.Packet, captured.Packet) && !slices.ContainsFunc(found, known) {
				found = append(found, course{outcome.State, was.choice, was.arrivals})
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
func (c *capture) starts(was course, endpoint names.Endpoint, captured frame.Frame) iter.Seq[follow.Start] {
	return func(yield func(follow.Start) bool) {
		for _, arrived := range was.arrivals {
			if start, ok := c.names.replyStart(arrived); ok {
				start.Packet = withFlags(start.Packet, captured.Packet)
				if !yield(start) {
					return
				}
			}
		}
		for _, question := range c.questions(endpoint, captured) {
			if start, err := c.begin(question, captured); err == nil && !yield(start) {
				return
			}
		}
	}
}

// withFlags gives a packet the TCP flags of another.
func withFlags(packet, from flow.Packet) flow.Packet {
	if from.Has("tcp_flags") {
		packet.Set("tcp_flags", from.Get("tcp_flags"))
	}
	return packet
}

// questions returns from where and to what a packet may have been sent that FROM received.
func (c *capture) questions(endpoint names.Endpoint, captured frame.Frame) []names.Question {
	src, dst, ok := captured.Packet.Addresses()
	if !ok {
		return nil
	}
	var senders []names.Endpoint
	for _, sender := range c.findAll(src.String()) {
		if sender.Node != "" && (sender.Kind == names.Pod || sender.Kind == names.Port || sender.Kind == names.NodePort) {
			sender.IPs = []netip.Addr{src}
			senders = append(senders, sender)
		}
	}
	if len(senders) == 0 {
		senders = []names.Endpoint{{Kind: names.External, Name: "external/" + src.String(), IPs: []netip.Addr{src}}}
	}
	endpoint.IPs = []netip.Addr{dst}
	targets := []names.Endpoint{endpoint}
	for _, s := range c.servicesWith(captured.Packet, dst) {
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

// findAll returns the endpoints with a name or an address.
func (c *capture) findAll(name string) []names.Endpoint {
	endpoint, err := c.names.Find(name, names.Filter{})
	if err == nil {
		return []names.Endpoint{endpoint}
	}
	if several, ok := errors.AsType[*names.AmbiguousError](err); ok {
		return several.Candidates
	}
	return nil
}

// servicesWith returns the services with a backend to which a packet is addressed.
func (c *capture) servicesWith(packet flow.Packet, dst netip.Addr) []names.Endpoint {
	if c.services == nil {
		c.services = map[string][]names.Endpoint{}
		for _, service := range c.names.Services() {
			for _, backend := range service.Backends {
				c.services[backend] = append(c.services[backend], service)
			}
		}
	}
	return slices.Concat(c.services[net.JoinHostPort(dst.String(), packet.Get("tp_dst"))], c.services[dst.String()])
}

// begin returns the packet that was captured as the sender of a question sends it.
func (c *capture) begin(question names.Question, captured frame.Frame) (follow.Start, error) {
	asked, err := c.names.First(question)
	if err != nil {
		return follow.Start{}, err
	}
	if asked.Unresolved.IsValid() {
		return follow.Start{}, fmt.Errorf("no port has the address %s", asked.Unresolved)
	}
	start, err := c.Session.start(asked, captured.Size)
	if err != nil {
		return start, err
	}
	packet := captured.Packet.Clone()
	for packet.IsTagged() {
		packet.PopVLAN()
	}
	source, direct := packet.Get("dl_src"), start.Packet.Get("dl_dst") == packet.Get("dl_dst")
	for _, name := range []string{"dl_src", "dl_dst", "nw_dst", "ipv6_dst"} {
		if start.Packet.Has(name) {
			packet.Set(name, start.Packet.Get(name))
		}
	}
	if direct && question.From.Kind == names.External {
		packet.Set("dl_src", source)
	}
	packet.Set("nw_ttl", "64")
	if question.To.Port != 0 {
		packet.Set("tp_dst", fmt.Sprint(question.To.Port))
	}
	if start.Packet.IsTagged() {
		packet.PushVLAN(start.Packet.Get("dl_vlan"), start.Packet.Get("dl_vlan_pcp"))
	}
	start.Packet, start.ID, start.Headless = packet, captured.ID, captured.Headless
	return start, nil
}
