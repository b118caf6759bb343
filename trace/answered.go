package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
)

// isAnswer reports whether a packet that came out is the answer to the question's packet, at
// its sender: OVN's routers answer pings of their addresses, and OVN's switches and routers
// ARP requests, in the pipeline. Neighbour solicitations are answered by ovn-controller.
func (w *writer) isAnswer(h *follow.Hop, b follow.Branch) bool {
	switch {
	case b.Kind == follow.Generated:
		return b.Answer != nil && b.Answer.To != "" && isSolicitation(w.start.Packet) && strings.HasPrefix(b.Answer.Name, "a neighbour advertisement")
	case b.Kind != follow.Delivered || b.Port == nil:
		return false
	case w.start.Network != "":
		return slices.Contains(b.Networks, w.start.Network) && answers(b.Packet, w.start.Packet)
	}
	return h.Node == w.start.Node && b.Port.Name == w.start.InPort && answers(b.Packet, w.start.Packet)
}

// isSolicitation reports whether a packet asks for the MAC address of an IPv6 address.
func isSolicitation(p flow.Packet) bool {
	t, ok := conntrack.TupleOf(p, 0)
	return ok && t.Proto == flow.ICMPv6 && t.SrcPort == 135
}

// answers reports whether a packet is the ARP reply or the ICMP echo reply to another one.
func answers(p, request flow.Packet) bool {
	if request.Get("arp_op") == "1" {
		return p.Get("arp_op") == "2" && p.Get("arp_spa") == request.Get("arp_tpa") && p.Get("arp_tpa") == request.Get("arp_spa")
	}
	asked, ok := conntrack.TupleOf(request, 0)
	if !ok {
		return false
	}
	got, ok := conntrack.TupleOf(p, 0)
	kind, query := conntrack.AnswerTo(asked)
	return ok && query && (asked.Proto == flow.ICMP || asked.Proto == flow.ICMPv6) && got.Proto == asked.Proto &&
		fmt.Sprint(got.SrcPort) == kind && got.Src == asked.Dst && got.Dst == asked.Src
}

// answering names what answers the question's packet. mac is the source of the answer, "" if
// that is not known.
func (w *writer) answering(mac string) string {
	p := w.start.Packet
	text := p.Get("arp_tpa")
	if isSolicitation(p) {
		text = p.Get("nd_target")
	}
	if text == "" {
		text = destination(p)
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return "OVN"
	}
	holders := w.names.WithIP(ip)
	isPort := func(e names.Endpoint) bool { return e.Kind == names.RouterPort }
	ports := slices.DeleteFunc(slices.Clone(holders), func(e names.Endpoint) bool { return !isPort(e) })
	if len(ports) > 1 { // of the router that answered
		near := slices.DeleteFunc(slices.Clone(ports), func(e names.Endpoint) bool {
			return !slices.ContainsFunc(w.names.WithMAC(mac), func(o names.Endpoint) bool { return isPort(o) && o.Switch == e.Switch })
		})
		if len(near) == 1 {
			ports = near
		}
	}
	switch {
	case len(ports) == 1:
		return fmt.Sprintf("router port %s (%s)", ports[0].Name, ip)
	case len(ports) > 1:
		return fmt.Sprintf("a router port with the address %s", ip)
	case len(holders) == 1:
		return fmt.Sprintf("OVN for %s (%s)", holders[0].Name, ip)
	}
	return fmt.Sprintf("OVN for %s", ip)
}

// answered notes who answered the question's packet, if one of its ends is the answer.
func (w *writer) answered(root *follow.Hop) {
	for h, b := range root.Ends() {
		if w.isAnswer(h, b) {
			w.answer.Answered = w.answering(b.Packet.Get("dl_src"))
			return
		}
	}
}

// losesAnswer reports whether a drop is that of the answer: the packet itself had arrived.
func (w *writer) losesAnswer(root *follow.Hop) bool {
	for _, b := range root.Ends() {
		if b.Kind == follow.Dropped && answers(b.Packet, w.start.Packet) {
			w.answer.Answered = w.answering("")
			return true
		}
	}
	return false
}

// vacant describes the network on which nothing has the address of the next hop, for a packet
// that a router of OVN keeps until the next hop has answered; "" if something may have it.
func (w *writer) vacant(h *follow.Hop, b follow.Branch) (network string, next netip.Addr) {
	if b.Answer == nil || !b.Answer.Asks {
		return "", next
	}
	if next = h.Pass.NextHop(); !next.IsValid() {
		return "", next
	}
	return w.names.Vacant(b.Packet.Get("dl_src"), next), next
}
