package answer

import (
	"cmp"
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

// Bridges returns the bridges whose flows a packet matches in a hop, in order. A hop that
// resumes after conntrack need not begin in the bridge that the packet entered.
func (h *Hop) Bridges() []string {
	var bridges []string
	for _, s := range h.Stages {
		if b := cmp.Or(s.OnBridge, h.Bridge); !slices.Contains(bridges, b) {
			bridges = append(bridges, b)
		}
	}
	if len(bridges) == 0 {
		return []string{h.Bridge}
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
	var matches []func(h *Hop, e End) bool
	switch {
	case a.Verdict == Undetermined:
		matches = append(matches, func(_ *Hop, e End) bool { return e.Kind == Unknown })
	case a.Drop != nil:
		matches = append(matches,
			func(h *Hop, e End) bool {
				return e.Kind == Dropped && e.Node == a.Drop.Node && a.DropStage(h) >= 0 && cmp.Or(e.Choice, h.Choice) == a.Drop.Choice
			},
			func(h *Hop, e End) bool {
				return e.Kind == Dropped && e.Node == a.Drop.Node && a.DropStage(h) >= 0
			},
			func(_ *Hop, e End) bool { return e.Kind == Dropped && e.Place == a.Drop.Place },
			func(_ *Hop, e End) bool { return e.Kind == Dropped && e.Node == a.Drop.Node })
	default:
		matches = append(matches, func(_ *Hop, e End) bool { return a.Arrives(e) },
			func(_ *Hop, e End) bool { return e.Kind == Delivered },
			func(_ *Hop, e End) bool { return e.Kind == Answered })
	}
	for _, match := range matches {
		for i := range a.Path {
			for j, e := range a.Path[i].Ends {
				if match(&a.Path[i], e) {
					return i, j
				}
			}
		}
	}
	return len(a.Path) - 1, -1
}

// DropStage returns the index of the stage of a hop at which the drop that decides
// happened, -1 for none.
func (a *Answer) DropStage(h *Hop) int {
	if a.Drop == nil {
		return -1
	}
	last := -1
	for i, s := range h.Stages {
		if s.Table == a.Drop.Table && s.Cookie == a.Drop.Cookie && s.Flow == a.Drop.Flow {
			last = i
		}
	}
	return last
}

// NewChoice returns the choices that were taken between a hop's sender and the hop.
func (a *Answer) NewChoice(hop int) string {
	h := &a.Path[hop]
	if h.From < 0 || h.From >= hop {
		return h.Choice
	}
	sender := a.Path[h.From].Choice
	if h.Choice == sender {
		return ""
	}
	return strings.TrimPrefix(h.Choice, sender+", ")
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
