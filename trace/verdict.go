package trace

import (
	"cmp"
	"slices"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
	"ovs-offline/trace/pass"
)

// results is a set of what may become of a packet.
type results uint8

const (
	lost    results = 1 << iota // it does not arrive
	unknown                     // something is missing to know
	arrives
)

// judgeAll returns what may become of the packet. One that starts on a physical network for
// the MAC address of a node that was not captured gets there as well.
func (w *writer) judgeAll(root *follow.Hop) results {
	all := w.judge(root)
	if why := w.strays(root); why != "" {
		w.left = true
		w.missing(why)
		all = both(all, unknown)
	}
	return all
}

// arrives reports whether an end is where the packet was to go. Its answer is not, and no
// flooded copy is.
func (w *writer) arrives(h *follow.Hop, b follow.Branch) bool {
	return w.arrived(h, b) && !w.isAnswer(h, b) && !w.isForAnother(h, b)
}

// isForAnother reports whether the databases show that another port than the one where a packet
// comes out has its MAC address: a bridge flooded the packet.
func (w *writer) isForAnother(h *follow.Hop, b follow.Branch) bool {
	mac := b.Packet.Get("dl_dst")
	if b.Port == nil || isMulticast(mac) {
		return false
	}
	holders := w.names.WithMAC(mac)
	return len(holders) > 0 && !slices.ContainsFunc(holders, func(e names.Endpoint) bool {
		// The bridge of ovn-kubernetes's nodes has the MAC address of their gateway router.
		ofNode := e.Kind == names.RouterPort && e.Node == h.Node && b.Port.IfaceID == "" && len(b.Networks) == 0
		return ofNode || e.LogicalPort != "" && b.Port.IfaceID == cmp.Or(e.Parent, e.LogicalPort)
	})
}

// judge returns what may become of the packet after a hop. Branches with a choice exclude
// each other; of the others, all happen, and one that arrives is enough.
func (w *writer) judge(h *follow.Hop) results {
	all, alternatives := lost, results(0)
	for _, b := range h.Branches {
		one := w.end(h, b)
		if b.Next != nil {
			one = w.judge(b.Next)
		}
		if b.Choice != "" {
			alternatives |= one
		} else {
			all = both(all, one)
		}
	}
	if alternatives != 0 {
		all = both(all, alternatives)
	}
	return all
}

// end returns what an end means for the question.
func (w *writer) end(h *follow.Hop, b follow.Branch) results {
	network, _ := w.vacant(h, b)
	switch {
	case w.arrives(h, b), w.isAnswer(h, b):
		return arrives
	case w.isOfOthers(b), network != "":
		return lost
	case b.Kind == follow.Undetermined, b.Kind == follow.Remote, b.Answer != nil && b.Answer.Asks, w.outdated(h, b), w.outside(h, b) != "":
		return unknown
	}
	return lost
}

// outdated reports whether a bridge dropped the packet by a MAC address that it had
// learned elsewhere before an earlier packet of the question: a live bridge learns from
// that packet, and a replica doesn't.
func (w *writer) outdated(h *follow.Hop, b follow.Branch) bool {
	if b.Kind != follow.Dropped || !w.taught[taught{h.Node, h.Packet.Get("dl_dst")}] {
		return false
	}
	const remark = "-> learned port is input port, dropping"
	return slices.ContainsFunc(h.Pass.Stages, func(s pass.Stage) bool { return slices.Contains(s.Lines, remark) })
}

// taught is a MAC address that a packet from a physical network showed to a node.
type taught struct{ node, mac string }

// both returns what may become of a packet of which two copies go on: for every pair of
// possible results the better one.
func both(a, b results) results {
	var all results
	for _, x := range []results{lost, unknown, arrives} {
		for _, y := range []results{lost, unknown, arrives} {
			if a&x != 0 && b&y != 0 {
				all |= max(x, y)
			}
		}
	}
	return all
}

// resultsOf returns what a verdict says may become of a packet.
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
