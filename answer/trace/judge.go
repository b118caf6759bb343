package trace

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
)

// results is a set of what may become of a packet.
type results uint8

const (
	lost    results = 1 << iota // it does not arrive
	unknown                     // something is missing to know
	arrives
)

// endTest reports whether an end is where the packet of a question was to go.
type endTest func(h *follow.Hop, b follow.Branch) bool

// judge decides what the ends of a packet mean for the question about it.
type judge struct {
	names   directory
	nodes   map[string]*node
	start   follow.Start
	arrived endTest
	taught  map[taught]bool // by this and earlier packets
}

// taught is a MAC address that a packet from a physical network showed to a node.
type taught struct{ node, mac string }

// arrives reports whether an end is where the packet was to go. Its answer is not, and no
// flooded copy is.
func (j *judge) arrives(hop *follow.Hop, branch follow.Branch) bool {
	return j.arrived(hop, branch) && !j.isAnswer(hop, branch) && !j.names.isForAnother(hop, branch)
}

// judgeHop returns what may become of the packet after a hop. Branches with a choice exclude
// each other; of the others, all happen, and one that arrives is enough.
func (j *judge) judgeHop(hop *follow.Hop) results {
	if j.lacks(hop) != "" {
		return unknown
	}
	all, alternatives := lost, results(0)
	for _, branch := range hop.Branches {
		result := j.judgeEnd(hop, branch)
		if branch.Next != nil {
			result = j.judgeHop(branch.Next)
		}
		if branch.Choice != "" {
			alternatives |= result
		} else {
			all = both(all, result)
		}
	}
	if alternatives != 0 {
		all = both(all, alternatives)
	}
	return all
}

// judgeEnd returns what an end means for the question.
func (j *judge) judgeEnd(hop *follow.Hop, branch follow.Branch) results {
	unanswered, _ := j.names.unanswered(hop, branch)
	switch {
	case j.arrives(hop, branch), j.isAnswer(hop, branch):
		return arrives
	case j.names.isForOthers(branch), unanswered != "":
		return lost
	case branch.Kind == follow.Undetermined, branch.Kind == follow.Remote, branch.Response != nil && branch.Response.Asks, j.isOutdated(hop, branch), j.doubt(hop, branch) != "":
		return unknown
	}
	return lost
}

// isOutdated reports whether a bridge dropped the packet by a MAC address that it had
// learned elsewhere before an earlier packet of the question: a live bridge learns from
// that packet, and a replica doesn't.
func (j *judge) isOutdated(hop *follow.Hop, branch follow.Branch) bool {
	if branch.Kind != follow.Dropped || !j.taught[taught{hop.Node, hop.Packet.Get("dl_dst")}] {
		return false
	}
	const remark = "-> learned port is input port, dropping"
	return slices.ContainsFunc(hop.Pass.Stages, func(s pass.Stage) bool { return slices.Contains(s.Lines, remark) })
}

// doubt returns why it is not known what becomes of a packet that came out of a port, "" if it
// is known: a host that no replica represents may forward the packet.
func (j *judge) doubt(hop *follow.Hop, branch follow.Branch) string {
	mac := branch.Packet.Get("dl_dst")
	if branch.Kind != follow.Delivered || branch.Port == nil || j.arrives(hop, branch) || j.isAnswer(hop, branch) || isMulticast(mac) {
		return ""
	}
	if len(branch.Networks) > 0 {
		return j.names.doubtOnNetwork(branch)
	}
	endpoint, ok := j.names.receiver(branch)
	if !ok || endpoint.MAC != mac || destination(branch.Packet) == "" || hasAddress(branch.Packet, endpoint) || j.names.detachedNetwork(branch) != "" {
		return ""
	}
	if j.names.isOfRouter(hop.Node, branch.Packet, endpoint) {
		return fmt.Sprintf("the packet arrives at %s (port %s) for %s, which is an address of the node: what its kernel does with the packet is not known", endpoint.Name, branch.Port.Name, destination(branch.Packet))
	}
	return fmt.Sprintf("the packet arrives at %s (port %s), and %s is not one of its addresses%s: whether it forwards the packet is not known",
		endpoint.Name, branch.Port.Name, destination(branch.Packet), j.names.idleService(branch.Packet))
}

// isWire reports whether a packet left by a physical network on which collected nodes show what
// becomes of it: the path goes on there.
func (j *judge) isWire(hop *follow.Hop, branch follow.Branch) bool {
	_, isEnclosed := j.names.enclosed(branch)
	return len(branch.Networks) > 0 && !j.arrives(hop, branch) && !isMulticast(branch.Packet.Get("dl_dst")) && j.names.doubtOnNetwork(branch) == "" && !isEnclosed
}

// isAnswer reports whether a packet that came out is the answer to the question's packet, at
// its sender: OVN's routers answer pings of their addresses, and OVN's switches and routers
// ARP requests, in the pipeline. Neighbour solicitations are answered by ovn-controller.
func (j *judge) isAnswer(hop *follow.Hop, branch follow.Branch) bool {
	switch {
	case branch.Kind == follow.Generated:
		return branch.Response != nil && branch.Response.To != "" && isSolicitation(j.start.Packet) && strings.HasPrefix(branch.Response.Name, "a neighbour advertisement")
	case branch.Kind != follow.Delivered || branch.Port == nil:
		return false
	case j.start.Process:
		return hop.Node == j.start.Node && hop.Namespace == j.start.Namespace && hop.Receives(branch) && answers(branch.Packet, j.start.Packet)
	case j.start.Network != "":
		return slices.Contains(branch.Networks, j.start.Network) && answers(branch.Packet, j.start.Packet)
	}
	return hop.Node == j.start.Node && branch.Port.Name == j.start.InPort && answers(branch.Packet, j.start.Packet)
}

// isSolicitation reports whether a packet asks for the MAC address of an IPv6 address.
func isSolicitation(packet flow.Packet) bool {
	tuple, ok := conntrack.TupleOf(packet, 0)
	return ok && tuple.Proto == flow.ICMPv6 && tuple.SrcPort == 135
}

// answers reports whether a packet is the ARP reply or the ICMP echo reply to another one.
func answers(packet, request flow.Packet) bool {
	if request.Get("arp_op") == "1" {
		return packet.Get("arp_op") == "2" && packet.Get("arp_spa") == request.Get("arp_tpa") && packet.Get("arp_tpa") == request.Get("arp_spa")
	}
	asked, ok := conntrack.TupleOf(request, 0)
	if !ok {
		return false
	}
	got, ok := conntrack.TupleOf(packet, 0)
	kind, query := conntrack.AnswerTo(asked)
	return ok && query && (asked.Proto == flow.ICMP || asked.Proto == flow.ICMPv6) && got.Proto == asked.Proto &&
		fmt.Sprint(got.SrcPort) == kind && got.Src == asked.Dst && got.Dst == asked.Src
}

// both returns what may become of a packet that goes on in two copies: for every pair of
// possible results the better one.
func both(first, second results) results {
	var all results
	for _, one := range []results{lost, unknown, arrives} {
		for _, other := range []results{lost, unknown, arrives} {
			if first&one != 0 && second&other != 0 {
				all |= max(one, other)
			}
		}
	}
	return all
}

// resultsOf returns what may become of a packet with a verdict.
func resultsOf(v answer.Verdict) results {
	switch v {
	case answer.Reachable:
		return arrives
	case answer.Unreachable:
		return lost
	case answer.Ambiguous:
		return arrives | lost
	}
	return unknown
}

// verdict returns the verdict about a packet that may have any of these results.
func (r results) verdict() answer.Verdict {
	switch r {
	case arrives:
		return answer.Reachable
	case lost:
		return answer.Unreachable
	case arrives | lost:
		return answer.Ambiguous
	}
	return answer.Undetermined
}
