package answer

import (
	"slices"
	"strings"
)

// Children returns the indices of the hops that each hop sent, and of the first hops. A
// hop that names no earlier hop as its sender is a first one.
func (a *Answer) Children() (first []int, of [][]int) {
	of = make([][]int, len(a.Path))
	for i, h := range a.Path {
		if h.From < 0 || h.From >= i {
			first = append(first, i)
		} else {
			of[h.From] = append(of[h.From], i)
		}
	}
	return first, of
}

// Chain returns the indices of the hops that lead to a hop, which is the last.
func (a *Answer) Chain(hop int) []int {
	var chain []int
	for hop >= 0 && hop < len(a.Path) {
		chain = append(chain, hop)
		if a.Path[hop].From >= hop {
			break
		}
		hop = a.Path[hop].From
	}
	slices.Reverse(chain)
	return chain
}

// Bridges returns the bridges that a packet passes in a hop, in order.
func (h *Hop) Bridges() []string {
	bridges := []string{h.Bridge}
	for _, s := range h.Stages {
		if s.OnBridge != "" && !slices.Contains(bridges, s.OnBridge) {
			bridges = append(bridges, s.OnBridge)
		}
	}
	return bridges
}

// Arrives reports whether an end is a port that the question asked for.
func (a *Answer) Arrives(e End) bool {
	return e.Kind == Delivered && slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Destination && o.Place == e.Place })
}

// Deciding returns the end that the verdict is about, as the index of a hop and of an end
// of it. The end is -1 if no end of the path is that.
func (a *Answer) Deciding() (hop, end int) {
	var matches []func(h Hop, e End) bool
	switch {
	case a.Verdict == Undetermined:
		matches = append(matches, func(_ Hop, e End) bool { return e.Kind == Unknown })
	case a.Drop != nil:
		matches = append(matches, a.isDrop,
			func(_ Hop, e End) bool { return e.Kind == Dropped && e.Place == a.Drop.Place },
			func(_ Hop, e End) bool { return e.Kind == Dropped && e.Node == a.Drop.Node })
	default:
		matches = append(matches, func(_ Hop, e End) bool { return a.Arrives(e) },
			func(_ Hop, e End) bool { return e.Kind == Delivered },
			func(_ Hop, e End) bool { return e.Kind == Answered })
	}
	for _, match := range matches {
		for i, h := range a.Path {
			for j, e := range h.Ends {
				if match(h, e) {
					return i, j
				}
			}
		}
	}
	return len(a.Path) - 1, -1
}

// isDrop reports whether an end is the drop that decides.
func (a *Answer) isDrop(h Hop, e End) bool {
	n := len(h.Stages)
	return e.Kind == Dropped && e.Place == a.Drop.Place && n > 0 && h.Stages[n-1] == a.Drop.Stage
}

// choices returns the choices on the way to a hop, as one text.
func (a *Answer) choices(hop int) string {
	var all []string
	for _, i := range a.Chain(hop) {
		if c := a.Path[i].Choice; c != "" && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return strings.Join(all, ", ")
}

// trunk returns the indices of the hops that every packet passes.
func (a *Answer) trunk() []int {
	first, children := a.Children()
	var trunk []int
	for next := first; len(next) == 1; next = children[next[0]] {
		trunk = append(trunk, next[0])
		if len(a.Path[next[0]].Ends) > 0 {
			break
		}
	}
	return trunk
}
