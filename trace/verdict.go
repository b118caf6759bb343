package trace

import (
	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
)

// results is a set of what may become of a packet.
type results uint8

const (
	lost    results = 1 << iota // it does not arrive
	unknown                     // something is missing to know
	arrives
)

// judge returns what may become of the packet after a hop. arrived reports whether an end
// is the destination. Branches with a choice exclude each other; of the others, all
// happen, and one that arrives is enough.
func judge(h *follow.Hop, arrived func(*follow.Hop, follow.Branch) bool) results {
	all, alternatives := lost, results(0)
	for _, b := range h.Branches {
		one := lost
		switch {
		case b.Next != nil:
			one = judge(b.Next, arrived)
		case arrived(h, b):
			one = arrives
		case b.Kind == follow.Undetermined, b.Kind == follow.Remote, b.Answer != nil && b.Answer.Asks:
			one = unknown
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
