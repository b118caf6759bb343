package follow

import (
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/pkg/openflow/flow"
)

// Reply returns where the answer to a delivered packet begins, with the connections as
// the packet left them; ok is false for a packet that nothing answers, such as an ICMP
// error. hop is the hop of the branch. The answer to a packet that left on a physical
// network comes from there, and that to one which a network namespace received from a process in
// it; a process in a VRF answers by the port of Open vSwitch by which the packet came. An echo reply has the size of
// the request, since it holds the same data (RFC 792, RFC 4443); any other answer is taken as one that fits everywhere.
func Reply(hop *Hop, branch Branch) (start Start, ok bool) {
	if branch.Kind != Delivered || branch.Port == nil {
		return Start{}, false
	}
	start = Start{Node: hop.Node, Bridge: branch.Port.Bridge, InPort: branch.Port.Name, ID: branch.ID, State: branch.State}
	switch {
	case hop.Receives(branch) && hop.VRF != "":
		if start.Bridge = ""; branch.Port.Number == 0 {
			return Start{}, false
		}
	case hop.Receives(branch):
		start = Start{Node: hop.Node, Process: true, Namespace: hop.Namespace, ID: branch.ID, State: branch.State}
	}
	if len(branch.Networks) > 0 {
		start = Start{Network: branch.Networks[0], ID: branch.ID, State: branch.State}
	}
	start.Packet, ok = reverse(branch.Packet)
	if branch.Packet.Has("icmp_type") {
		start.Size = branch.Size
	}
	return start, ok
}

// reverse returns the answer to a packet.
func reverse(packet flow.Packet) (reply flow.Packet, ok bool) {
	reply = packet.Headers()
	tuple, ok := conntrack.TupleOf(packet, 0)
	if !ok {
		return reply, false
	}
	reply.Set("dl_src", packet.Get("dl_dst"))
	reply.Set("dl_dst", packet.Get("dl_src"))
	reply.SetAddresses(tuple.Dst, tuple.Src)
	reply.Set("nw_ttl", "64")
	switch tuple.Proto {
	case flow.ICMP, flow.ICMPv6:
		answer, ok := conntrack.AnswerTo(tuple)
		reply.Set("icmp_type", answer)
		return reply, ok
	case flow.TCP:
		reply.Set("tcp_flags", "ack")
		if flags := packet.Get("tcp_flags"); flags == "syn" || flags == "0" || flags == "" {
			reply.Set("tcp_flags", "syn|ack")
		}
	}
	if packet.Has("tp_src") {
		reply.Set("tp_src", packet.Get("tp_dst"))
		reply.Set("tp_dst", packet.Get("tp_src"))
	}
	return reply, true
}
