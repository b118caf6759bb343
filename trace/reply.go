package trace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
)

// arrival is an end at the destination, from which the reply starts.
type arrival struct {
	hop    *follow.Hop
	branch follow.Branch
}

// reply follows the reply to the packet that arrived first, with the connections that the
// packet left.
func (w *writer) reply(ctx context.Context, from names.Endpoint) error {
	if w.answer.Verdict != answer.Reachable || len(w.arrivals) == 0 {
		return nil
	}
	end := w.arrivals[0]
	p, err := reversed(end.branch.Packet)
	if err != nil {
		w.assume(fmt.Sprintf("the reply is not followed: %v", err))
		return nil
	}
	if mac := w.neighbour(end, p); mac != "" {
		p.Set("dl_dst", mac)
	}
	back := w.writer("the reply: "+p.Input(), at(from))
	start := follow.Start{Node: end.hop.Node, InPort: end.branch.Port.Name, Packet: p, ID: end.branch.ID, State: end.branch.State}
	if err := back.follow(ctx, []follow.Start{start}); err != nil {
		return err
	}
	w.answer.Return = back.answer
	if back.answer.Verdict == answer.Unreachable {
		w.answer.Verdict = answer.OneWay
	}
	return nil
}

// neighbour returns the MAC address that the receiver of a packet sends its reply to: it
// resolves the address itself, and does not take the packet's source. It returns "" where
// the databases don't state it.
func (w *writer) neighbour(end arrival, reply flow.Packet) string {
	e, err := w.names.Find(end.branch.Port.IfaceID, names.Filter{})
	if err != nil || end.branch.Port.IfaceID == "" {
		return ""
	}
	ip, err := netip.ParseAddr(destination(reply))
	if err != nil {
		return ""
	}
	first, err := w.names.First(names.Question{From: e, To: names.Endpoint{Kind: names.External, Name: ip.String(), IPs: []netip.Addr{ip}}})
	if err != nil || first.Unresolved.IsValid() {
		return ""
	}
	p, err := flow.Parse(first.Flow)
	if err != nil {
		return ""
	}
	return p.Get("dl_dst")
}

// errNoReply is wrapped where a packet has no reply.
var errNoReply = errors.New("no reply is defined")

// reversed returns the reply to a packet.
func reversed(p flow.Packet) (flow.Packet, error) {
	r := p.Headers()
	for _, pair := range [][2]string{{"dl_src", "dl_dst"}, {"nw_src", "nw_dst"}, {"ipv6_src", "ipv6_dst"}, {"tp_src", "tp_dst"}} {
		if a, b := r.Get(pair[0]), r.Get(pair[1]); a != "" || b != "" {
			r.Set(pair[0], b)
			r.Set(pair[1], a)
		}
	}
	if r.Has("arp_op") {
		return r, fmt.Errorf("%w for ARP", errNoReply)
	}
	r.Set("nw_ttl", "64")
	r.Delete("tcp_flags")
	if kind := r.Get("icmp_type"); kind != "" {
		reply, ok := map[string]string{"8": "0", "128": "129"}[kind] // echo (RFC 792, RFC 4443)
		if !ok {
			return r, fmt.Errorf("%w for ICMP type %s", errNoReply, kind)
		}
		r.Set("icmp_type", reply)
	}
	return r, nil
}
