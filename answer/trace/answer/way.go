package answer

import (
	"cmp"
	"slices"
	"strings"
)

// Children returns the indices of the first hops, and of the hops that each hop sent. A hop
// that names no earlier hop as its sender is a first one.
func (a *Answer) Children() (first []int, children [][]int) {
	children = make([][]int, len(a.Path))
	for i, hop := range a.Path {
		if hop.From < 0 || hop.From >= i {
			first = append(first, i)
		} else {
			children[hop.From] = append(children[hop.From], i)
		}
	}
	return first, children
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
	for _, stage := range h.Stages {
		if b := cmp.Or(stage.OnBridge, h.Bridge); !slices.Contains(bridges, b) {
			bridges = append(bridges, b)
		}
	}
	if len(bridges) == 0 {
		return []string{h.Bridge}
	}
	return bridges
}

// Arrives reports whether an end is a port that the question asked for.
func (a *Answer) Arrives(end End) bool {
	return end.Kind == Delivered && slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Destination && o.Location == end.Location })
}

// Deciding returns the end that the verdict is about, as the index of a hop and of one of its
// ends. The end is -1 if the path does not have it.
func (a *Answer) Deciding() (hop, end int) {
	var matches []func(h *Hop, candidate End) bool
	switch {
	case a.Verdict == Undetermined:
		matches = append(matches, func(_ *Hop, candidate End) bool { return candidate.Kind == Unknown })
	case a.Drop != nil:
		matches = append(matches,
			func(h *Hop, candidate End) bool {
				return candidate.Kind == Dropped && candidate.Node == a.Drop.Node && a.DropStage(h) >= 0 && cmp.Or(candidate.Choice, h.Choice) == a.Drop.Choice
			},
			func(h *Hop, candidate End) bool {
				return candidate.Kind == Dropped && candidate.Node == a.Drop.Node && a.DropStage(h) >= 0
			},
			func(_ *Hop, candidate End) bool {
				return candidate.Kind == Dropped && candidate.Location == a.Drop.Location
			},
			func(_ *Hop, candidate End) bool { return candidate.Kind == Dropped && candidate.Node == a.Drop.Node })
	default:
		matches = append(matches, func(_ *Hop, candidate End) bool { return a.Arrives(candidate) },
			func(_ *Hop, candidate End) bool { return candidate.Kind == Delivered },
			func(_ *Hop, candidate End) bool { return candidate.Kind == Answered })
	}
	for _, match := range matches {
		for i := range a.Path {
			for j, candidate := range a.Path[i].Ends {
				if match(&a.Path[i], candidate) {
					return i, j
				}
			}
		}
	}
	return len(a.Path) - 1, -1
}

// DropStage returns the index of the stage of a hop that made the deciding drop, -1 for none.
func (a *Answer) DropStage(hop *Hop) int {
	if a.Drop == nil {
		return -1
	}
	last := -1
	for i, stage := range hop.Stages {
		if stage.Table == a.Drop.Table && stage.Cookie == a.Drop.Cookie && stage.Flow == a.Drop.Flow {
			last = i
		}
	}
	return last
}

// NewChoice returns the choices that were taken between a hop's sender and the hop.
func (a *Answer) NewChoice(hop int) string {
	taken := &a.Path[hop]
	if taken.From < 0 || taken.From >= hop {
		return taken.Choice
	}
	sender := a.Path[taken.From].Choice
	if taken.Choice == sender {
		return ""
	}
	return strings.TrimPrefix(taken.Choice, sender+", ")
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
