package follow

import (
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
)

// Reply returns where the answer to a delivered packet begins, with the connections as
// the packet left them; ok is false for a packet that nothing answers, such as an ICMP
// error. hop is the hop of the branch. The answer to a packet that left on a physical
// network comes from there. An echo reply has the size of the request, since it holds the
// same data (RFC 792, RFC 4443); any other answer is taken as one that fits everywhere.
func Reply(hop *Hop, b Branch) (s Start, ok bool) {
	if b.Kind != Delivered || b.Port == nil {
		return Start{}, false
	}
	s = Start{Node: hop.Node, Bridge: b.Port.Bridge, InPort: b.Port.Name, ID: b.ID, State: b.State}
	if len(b.Networks) > 0 {
		s = Start{Network: b.Networks[0], ID: b.ID, State: b.State}
	}
	s.Packet, ok = reversed(b.Packet)
	if b.Packet.Has("icmp_type") {
		s.Size = b.Size
	}
	return s, ok
}

// reversed returns the answer to a packet.
func reversed(p flow.Packet) (r flow.Packet, ok bool) {
	r = p.Headers()
	t, ok := conntrack.TupleOf(p, 0)
	if !ok {
		return r, false
	}
	r.Set("dl_src", p.Get("dl_dst"))
	r.Set("dl_dst", p.Get("dl_src"))
	r.SetAddresses(t.Dst, t.Src)
	r.Set("nw_ttl", "64")
	switch t.Proto {
	case flow.ICMP, flow.ICMPv6:
		answer, ok := conntrack.AnswerTo(t)
		r.Set("icmp_type", answer)
		return r, ok
	case flow.TCP:
		r.Set("tcp_flags", "ack")
		if flags := p.Get("tcp_flags"); flags == "syn" || flags == "0" || flags == "" {
			r.Set("tcp_flags", "syn|ack")
		}
	}
	if p.Has("tp_src") {
		r.Set("tp_src", p.Get("tp_dst"))
		r.Set("tp_dst", p.Get("tp_src"))
	}
	return r, true
}
