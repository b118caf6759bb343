package trace

import (
	"slices"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/pass"
)

// results is a set of what may become of a packet.
type results uint8

const (
	lost    results = 1 << iota // it does not arrive
	unknown                     // something is missing to know
	arrives
)

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
	switch {
	case w.arrived(h, b):
		return arrives
	case w.isOfOthers(b):
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
