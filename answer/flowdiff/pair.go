package flowdiff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
)

// pairs has the ids of state b by the ids of state a that stand for the same, and the other way
// round.
type pairs struct {
	toB, toA map[openflow.ID]openflow.ID
}

func (p *pairs) add(a, b openflow.ID) {
	p.toB[a], p.toA[b] = b, a
}

// nameOfB names an id of state b as state a does. An id that stands for nothing in a has a
// name that no id of a has.
func (p *pairs) nameOfB(b openflow.ID) string {
	if a, ok := p.toA[b]; ok {
		return nameOfA(a)
	}
	return strconv.FormatUint(uint64(b.Number), 10) + "'"
}

func nameOfA(a openflow.ID) string { return strconv.FormatUint(uint64(a.Number), 10) }

// pair finds the ids that stand for the same in both states.
func pair(a, b side) *pairs {
	found := &pairs{map[openflow.ID]openflow.ID{}, map[openflow.ID]openflow.ID{}}
	contentA, contentB := conjunctionContent(a.flows), conjunctionContent(b.flows)
	found.byContent(contentA, contentB, nil)
	found.byShare(contentA, contentB)
	votes := found.votes(a.flows, b.flows)
	for kind, lists := range map[openflow.IDKind][2][]entry{groups: {a.groups, b.groups}, meters: {a.meters, b.meters}} {
		found.byContent(entryContent(kind, lists[0]), entryContent(kind, lists[1]), votes)
	}
	found.byVotes(votes)
	found.byNumber(a, b)
	return found
}

// content describes what each id stands for, in sorted texts.
type content map[openflow.ID][]string

// conjunctionContent returns, for each conjunction, the flows of its clauses and the flows that match
// its id.
func conjunctionContent(flows []flow) content {
	found := content{}
	for i := range flows {
		current := &flows[i]
		if !current.refers || !strings.Contains(current.Text, "conj") {
			continue
		}
		text := fmt.Sprintf("%d|%d|", current.key.Table, current.key.Priority)
		for _, at := range openflow.IDs(current.key.Match) {
			if at.Kind == conjunctions {
				found[at] = append(found[at], fmt.Sprintf("%s%s|%#x", text, openflow.RenameIDs(current.key.Match, anyID), current.key.Cookie))
			}
		}
		for number, dimension := range openflow.Clauses(current.actions) {
			at := openflow.ID{Kind: conjunctions, Number: number}
			found[at] = append(found[at], text+current.key.Match+"|"+dimension)
		}
	}
	for _, list := range found {
		slices.Sort(list)
	}
	return found
}

func entryContent(kind openflow.IDKind, entries []entry) content {
	found := content{}
	for _, e := range entries {
		found[openflow.ID{Kind: kind, Number: e.ID}] = []string{e.body}
	}
	return found
}

// byContent pairs ids with equal content. Of several that are equal, those with the most
// votes are paired, then those with the same number.
func (p *pairs) byContent(a, b content, votes map[[2]openflow.ID]int) {
	equal := map[string][2][]openflow.ID{}
	add := func(side int, all content) {
		for _, at := range sortedIDs(all) {
			key := strings.Join(all[at], "\n")
			lists := equal[key]
			lists[side] = append(lists[side], at)
			equal[key] = lists
		}
	}
	add(0, a)
	add(1, b)
	for _, lists := range equal {
		if len(lists[0]) == 1 && len(lists[1]) == 1 {
			p.add(lists[0][0], lists[1][0])
			continue
		}
		var candidates []candidate
		for _, x := range lists[0] {
			for _, y := range lists[1] {
				candidates = append(candidates, candidate{x, y, votes[[2]openflow.ID{x, y}]})
			}
		}
		p.greedy(candidates)
	}
}

// byShare pairs conjunctions with different flows: the conjunctions that share the most.
func (p *pairs) byShare(a, b content) {
	with := map[string][]openflow.ID{} // the unpaired ids of a, by a part of their content
	for at, list := range a {
		if _, paired := p.toB[at]; paired {
			continue
		}
		for _, part := range list {
			with[part] = append(with[part], at)
		}
	}
	shared := map[[2]openflow.ID]int{}
	for at, list := range b {
		if _, paired := p.toA[at]; paired {
			continue
		}
		for _, part := range list {
			for _, other := range with[part] {
				shared[[2]openflow.ID{other, at}]++
			}
		}
	}
	p.byVotes(shared)
}

// votes counts, for pairs of ids of groups and meters, the flows that differ in nothing
// else and refer to one in state a and to the other in state b.
func (p *pairs) votes(flowsA, flowsB []flow) map[[2]openflow.ID]int {
	of := map[openflow.Key]*flow{}
	for i := range flowsA {
		if f := &flowsA[i]; f.refers {
			criteria, _ := f.renamed(nameOfA)
			of[criteria] = f
		}
	}
	votes := map[[2]openflow.ID]int{}
	for i := range flowsB {
		current := &flowsB[i]
		if !current.refers {
			continue
		}
		criteria, _ := current.renamed(p.nameOfB)
		other := of[criteria]
		if other == nil || openflow.RenameIDs(other.actions, anyID) != openflow.RenameIDs(current.actions, anyID) {
			continue
		}
		mine := openflow.IDs(current.actions)
		for i, x := range openflow.IDs(other.actions) {
			if x.Kind != conjunctions {
				votes[[2]openflow.ID{x, mine[i]}]++
			}
		}
	}
	return votes
}

// byVotes makes pairs of the remaining ids, by the votes for them.
func (p *pairs) byVotes(votes map[[2]openflow.ID]int) {
	var candidates []candidate
	for both, n := range votes {
		candidates = append(candidates, candidate{both[0], both[1], n})
	}
	p.greedy(candidates)
}

// byNumber pairs the remaining groups and meters with the same number.
func (p *pairs) byNumber(a, b side) {
	var candidates []candidate
	for kind, lists := range map[openflow.IDKind][2][]entry{groups: {a.groups, b.groups}, meters: {a.meters, b.meters}} {
		there := entryContent(kind, lists[1])
		for at := range entryContent(kind, lists[0]) {
			if _, ok := there[at]; ok {
				candidates = append(candidates, candidate{at, at, 0})
			}
		}
	}
	p.greedy(candidates)
}

// candidate is a pair that may be made.
type candidate struct {
	a, b  openflow.ID
	votes int
}

// greedy makes the pairs with the most votes first, and then those with the same number.
func (p *pairs) greedy(candidates []candidate) {
	other := func(c candidate) int {
		if c.a == c.b {
			return 0
		}
		return 1
	}
	slices.SortFunc(candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.votes, x.votes), cmp.Compare(other(x), other(y)), compareIDs(x.a, y.a), compareIDs(x.b, y.b))
	})
	for _, best := range candidates {
		_, usedA := p.toB[best.a]
		_, usedB := p.toA[best.b]
		if !usedA && !usedB {
			p.add(best.a, best.b)
		}
	}
}

func compareIDs(a, b openflow.ID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Number, b.Number))
}

func sortedIDs(all content) []openflow.ID { return slices.SortedFunc(maps.Keys(all), compareIDs) }
