package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir/netns"
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
func (s *Session) Ask(ctx context.Context, between Between) (*answer.Answer, error) {
	return s.askUndisturbed(func() (*answer.Answer, error) { return s.ask(ctx, between) })
}

func (s *Session) ask(ctx context.Context, between Between) (*answer.Answer, error) {
	question := between.Question
	err := CheckSize(between.Size)
	if err != nil {
		return nil, err
	}
	if question.From, question.To, question.DstPort, err = s.Endpoints(between); err != nil {
		return nil, err
	}
	if isPing := question.Protocol == "icmp" || question.Protocol == "icmp6"; isPing && (question.SrcPort != 0 || question.DstPort != 0) {
		return nil, fmt.Errorf("%w: %s has no ports: leave the port out, or ask with tcp, udp or sctp", ErrQuestion, question.Protocol)
	}
	first, err := s.names.First(question)
	if err != nil {
		return nil, err
	}
	start, err := s.start(first, between.Size)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(between.From); err != nil && question.From.Kind == names.NodePort {
		start = s.startOnNode(ctx, start)
	}
	asked := s.inquire(fmt.Sprintf("%s -> %s: %s", question.From.Name, question.To.Name, first.Flow), endsAt(question.To))
	asked.answer.Family = first.Family
	for _, text := range first.Assumed {
		asked.assume(text)
	}
	if strings.HasPrefix(between.To, external) && question.To.Kind != names.External {
		asked.assume(fmt.Sprintf("%s is a %s in the databases, and is asked as that", question.To.Name, question.To.Kind))
	}
	asked.remarkTarget(question.To)
	if err := asked.follow(ctx, start); err != nil {
		return nil, err
	}
	if first.Unresolved.IsValid() && len(asked.answer.Path) > 0 {
		err = asked.answerUnresolved(first)
	} else {
		err = asked.followReplies(ctx, question.From)
	}
	asked.doubtPacket(first)
	return asked.answer, err
}

// remarkTarget remarks that no port has the address to which a floating IP leads, or for which ports load balancers
// have the address that is pinged.
func (q *inquiry) remarkTarget(to names.Endpoint) {
	for _, backend := range to.Backends {
		ip, err := netip.ParseAddr(backend)
		if to.Kind == names.FloatingIP && err == nil && len(q.names.WithIP(ip)) == 0 {
			q.remark(fmt.Sprintf("the floating IP %s leads to %s, and no port in the databases has this address", to.Name, ip))
		}
	}
	for _, ip := range to.IPs {
		if ports := q.names.PortsAt(ip); to.Kind == names.Service && to.Port == 0 && len(ports) > 0 {
			q.remark(fmt.Sprintf("the packet is a ping, and load balancers have the address %s for these ports only: %s", ip, phrase.FirstNames(ports)))
		}
	}
}

// doubtPacket makes the answer undetermined where the sender may send another packet than the one that was followed.
func (q *inquiry) doubtPacket(first names.Packet) {
	if first.Unknown != "" {
		q.answer.Verdict, q.answer.Answered, q.answer.Drop = answer.Undetermined, "", nil
		q.answer.Missing = slices.Insert(q.answer.Missing, 0, first.Unknown)
	}
}

// external begins the names of addresses outside.
const external = "external/"

// destination returns the endpoint that a packet of a sender is sent to, and the port that follows its
// name, 0 for none.
func (s *Session) destination(between Between, from names.Endpoint) (names.Endpoint, uint16, error) {
	filter := names.Filter{Network: between.Network, Protocol: between.Protocol, From: &from}
	filter.Ping = strings.HasPrefix(between.Protocol, "icmp") || between.Protocol == "" && between.DstPort == 0 && between.SrcPort == 0
	if address, outside := strings.CutPrefix(between.To, external); outside {
		inside := between
		inside.To = address
		if endpoint, port, ok, err := s.findOutside(inside, filter); ok || err != nil {
			return endpoint, port, err
		}
		if err := checkAmbiguous(inside); err != nil {
			return names.Endpoint{}, 0, err
		}
	}
	endpoint, err := s.findWithPort(between.To, between.DstPort, filter)
	at := strings.LastIndexByte(between.To, ':')
	var protocol *names.ProtocolError
	if err == nil || at < 0 || errors.As(err, &protocol) {
		return endpoint, between.DstPort, err
	}
	port, badPort := strconv.ParseUint(between.To[at+1:], 10, 16)
	if badPort != nil {
		return endpoint, 0, err
	}
	named, notFound := s.findWithPort(names.Unbracketed(between.To[:at]), uint16(port), filter)
	if errors.As(notFound, &protocol) {
		return endpoint, 0, notFound
	}
	if notFound != nil {
		return endpoint, 0, err
	}
	return named, uint16(port), nil
}

// checkAmbiguous returns an error for an IPv6 address outside without brackets whose last digits may be a port: RFC 3986,
// 3.2.2, asks for brackets before a port.
func checkAmbiguous(between Between) error {
	at := strings.LastIndexByte(between.To, ':')
	if _, err := netip.ParseAddr(between.To); at < 0 || err != nil || between.DstPort != 0 {
		return nil
	}
	address, err := netip.ParseAddr(between.To[:at])
	port, badPort := strconv.ParseUint(between.To[at+1:], 10, 16)
	if err != nil || badPort != nil || port == 0 {
		return nil
	}
	return fmt.Errorf("%w: external/%s is an address, or an address and a port: write external/[%s]:%d with the port, or external/[%s] without one",
		ErrQuestion, between.To, address, port, between.To)
}

// findWithPort returns the endpoint with a name that is asked for with a port, 0 for none. A
// service with another port is meant only if nothing else has the name: in ovn-kubernetes, a
// node, its gateway router and each NodePort service have the same address.
func (s *Session) findWithPort(name string, port uint16, filter names.Filter) (names.Endpoint, error) {
	filter.Port, filter.Ping = port, filter.Ping && port == 0
	endpoint, err := s.names.Find(name, filter)
	if unknown := new(*names.UnknownError); port == 0 || !errors.As(err, unknown) {
		return endpoint, err
	}
	filter.Port = 0
	return s.names.Find(name, filter)
}

// findOutside returns the endpoint of OVN that has an address which was asked for as one
// outside, and the port that follows the address; ok is false if there is none.
func (s *Session) findOutside(between Between, filter names.Filter) (endpoint names.Endpoint, port uint16, ok bool, err error) {
	address, port := names.Unbracketed(between.To), between.DstPort
	if at, bad := netip.ParseAddrPort(between.To); bad == nil {
		address, port = at.Addr().String(), at.Port()
	}
	filter.Port, filter.Ping = port, filter.Ping && port == 0
	if endpoint, ok, err = s.names.Outside(address, filter); ok || err != nil || port == 0 {
		return endpoint, port, ok, err
	}
	filter.Port = 0
	endpoint, ok, err = s.names.Outside(address, filter)
	return endpoint, port, ok, err
}

// Flow answers what becomes of a packet that enters a bridge of a node. The text is the
// bridge and a flow with in_port, as ofproto/trace takes them.
func (s *Session) Flow(ctx context.Context, node, text string, size int) (*answer.Answer, error) {
	return s.askUndisturbed(func() (*answer.Answer, error) { return s.flow(ctx, node, text, size) })
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
	packet, err := flow.Parse(fields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuestion, err)
	}
	in := packet.Get("in_port")
	port, ok := n.Port(in)
	if strings.EqualFold(in, "LOCAL") {
		port, ok = n.Port(bridge)
	} else if number, err := strconv.Atoi(in); err == nil {
		port, ok = n.Numbered(bridge, number)
		ok = ok && port.Unknown != ovsdb.UnusedNumber // the replica's number is not the node's
	}
	if !ok {
		return nil, n.noPort(bridge, in, text)
	}
	packet.Delete("in_port")
	start := follow.Start{Node: node, Bridge: bridge, InPort: port.Name, Packet: packet, Size: size}
	asked := s.inquire(fmt.Sprintf("%s %s", node, text), s.names.comesOut)
	asked.answer.Family = familyOf(packet)
	if err := asked.follow(ctx, start); err != nil {
		return nil, err
	}
	return asked.answer, asked.answerUnquoted(ctx)
}

// noPort returns the error of a flow that enters by a port that the bridge does not have.
func (n *node) noPort(bridge, in, text string) error {
	var ports, unnumbered []string
	for _, port := range n.Ports() {
		switch {
		case port.Bridge != bridge:
		case port.Unknown == ovsdb.UnusedNumber:
			unnumbered = append(unnumbered, port.Name)
		default:
			ports = append(ports, fmt.Sprintf("%d (%s)", port.Number, port.Name))
		}
	}
	if number, err := strconv.Atoi(in); err == nil && len(ports)+len(unnumbered) > 0 && n.incomplete != nil && !n.incomplete.listed[bridge] {
		return fmt.Errorf("%w: the ports of bridge %s of node %s were not recorded, and its flows name no port %d: give the output of ovs-ofctl show %s; the ports that they name: %s",
			ErrQuestion, bridge, n.Name, number, bridge, phrase.FirstNames(append(ports, unnumbered...)))
	}
	slices.Sort(unnumbered) // the replica's numbers are not the node's
	ports = append(ports, unnumbered...)
	if in == "" || len(ports) == 0 {
		return fmt.Errorf("%w: the flow has to begin with a bridge of node %s and in_port=PORT: %q", ErrQuestion, n.Name, text)
	}
	return fmt.Errorf("%w: bridge %s of node %s has no port %s; its ports are: %s", ErrQuestion, bridge, n.Name, in, phrase.FirstNames(ports))
}

// answerUnquoted answers the question about an ICMP error if the answer does not depend on the
// packet inside, which a flow does not have: whether that belongs to a connection or not.
func (q *inquiry) answerUnquoted(ctx context.Context) error {
	start := q.judge.start
	t, ok := conntrack.TupleOf(start.Packet, 0)
	if !ok || !t.IsError() || q.answer.Verdict != answer.Undetermined {
		return nil
	}
	list, err := q.inStates(ctx, start, q.judge.arrived, []conntrack.Flags{{Inv: true}, {Rel: true}, {Rel: true, Rpl: true}})
	differs := func(a *answer.Answer) bool {
		return a.Verdict == answer.Undetermined || a.Verdict != list[0].Verdict
	}
	if err != nil || slices.ContainsFunc(list, differs) {
		return err
	}
	list[0].Question, list[0].Family = q.answer.Question, q.answer.Family
	list[0].Trust.Assumed = append(list[0].Trust.Assumed, "the packet inside the ICMP error is not known: the verdict is the same whether it belongs to a connection or not")
	*q.answer = *list[0]
	return nil
}

// ErrQuestion is wrapped by the error of a question that can't be asked.
var ErrQuestion = fault.Wrap(fault.Usage, errors.New("the question can't be asked"))

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
	if guest, ok := s.nodes[start.Node].GuestOf(port); ok { // a bridge of Linux is between it and the VM
		start.InPort = guest.Name
	}
	return start, nil
}

// startOnNode returns the start of a packet that the node itself sends: its kernel chooses by which device, and, by the
// routes, from which address. Where the kernel can't be asked, the packet starts at the management port.
func (s *Session) startOnNode(ctx context.Context, start follow.Start) follow.Start {
	_, to, ok := start.Packet.Addresses()
	if !ok {
		return start
	}
	source, ok := s.nodes[start.Node].SourceOf(to)
	if !ok || !s.nodes[start.Node].HasNamespaces(ctx) {
		return start
	}
	start.InPort, start.Process, start.Namespace = "", true, netns.Own
	start.Packet.SetAddresses(source, to)
	return start
}

// isDelivered accepts every port that a packet comes out of.
func isDelivered(_ *follow.Hop, branch follow.Branch) bool { return branch.Kind == follow.Delivered }

// familyOf returns 4 or 6 for an IP packet, 0 for another one.
func familyOf(packet flow.Packet) int {
	src, _, ok := packet.Addresses()
	switch {
	case !ok:
		return 0
	case src.Is4():
		return 4
	}
	return 6
}

// endsAt returns a test whether an end is at an endpoint.
func endsAt(endpoint names.Endpoint) endTest {
	return func(hop *follow.Hop, branch follow.Branch) bool {
		if branch.Kind != follow.Delivered || branch.Port == nil {
			return false
		}
		ofNode := hop.Receives(branch) && hop.Namespace == netns.Own
		toNode := ofNode || branch.Port.Name == branch.Port.Bridge // the port of a bridge itself leads to the node
		switch endpoint.Kind {
		case names.External:
			return len(branch.Networks) > 0 && hasAddress(branch.Packet, endpoint)
		case names.Service:
			return (branch.Port.IfaceID != "" || toNode) && isBackend(branch.Packet, endpoint)
		case names.FloatingIP:
			return branch.Port.IfaceID != "" && (isBackend(branch.Packet, endpoint) || hasAddress(branch.Packet, endpoint))
		case names.NodePort:
			if ofNode {
				return hop.Node == endpoint.Node
			}
		case names.RouterPort:
			// The bridge of ovn-kubernetes's nodes has the address of their gateway router.
			return (branch.Port.IfaceID != "" || toNode) && (branch.Port.IfaceID == endpoint.LogicalPort || hasAddress(branch.Packet, endpoint))
		}
		return branch.Port.IfaceID == cmp.Or(endpoint.Parent, endpoint.LogicalPort) && (endpoint.Tag == 0 || branch.Packet.Get("dl_vlan") == fmt.Sprint(endpoint.Tag))
	}
}

func destination(packet flow.Packet) string {
	if address := packet.Get("ipv6_dst"); address != "" {
		return address
	}
	return packet.Get("nw_dst")
}

func hasAddress(packet flow.Packet, endpoint names.Endpoint) bool {
	for _, ip := range endpoint.IPs {
		if ip.String() == destination(packet) {
			return true
		}
	}
	return false
}

// isBackend reports whether a packet is to a backend of a service.
func isBackend(packet flow.Packet, service names.Endpoint) bool {
	for _, backend := range service.Backends {
		address := backend
		if i := strings.LastIndexByte(backend, ':'); i >= 0 && (strings.Contains(backend, "]:") || strings.Count(backend, ":") == 1) {
			address = backend[:i]
		}
		if strings.Trim(address, "[]") == destination(packet) {
			return true
		}
	}
	return false
}
