package trace

import (
	"context"
	"maps"
	"net/netip"
	"strconv"

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
	start, ok := follow.Reply(end.hop, end.branch)
	if !ok {
		return nil // nothing replies to it
	}
	if mac := w.neighbour(end, start.Packet); mac != "" {
		start.Packet.Set("dl_dst", mac)
	}
	back := w.writer("the reply: "+start.Packet.Input(), at(from))
	maps.Copy(back.taught, w.taught)
	if err := back.follow(ctx, start); err != nil {
		return err
	}
	w.answer.Return = back.answer
	if back.answer.Verdict == answer.Unreachable {
		w.answer.Verdict = answer.OneWay
	}
	return nil
}

// receiver returns the endpoint that receives a packet that came out of a port.
func (w *writer) receiver(b follow.Branch) (e names.Endpoint, ok bool) {
	if b.Port == nil || b.Port.IfaceID == "" {
		return names.Endpoint{}, false
	}
	tag, _ := strconv.Atoi(b.Packet.Get("dl_vlan"))
	return w.names.Holder(b.Port.IfaceID, tag)
}

// neighbour returns the MAC address that the receiver of a packet sends its reply to: it
// resolves the address itself, and does not take the packet's source. It returns "" where
// the databases don't state it.
func (w *writer) neighbour(end arrival, reply flow.Packet) string {
	e, ok := w.receiver(end.branch)
	if !ok {
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
