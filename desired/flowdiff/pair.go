package flowdiff

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pairs are the ids of state b by those of state a that stand for the same, and the other
// way round.
type pairs struct {
	toB, toA map[id]id
}

func (p *pairs) add(a, b id) {
	p.toB[a], p.toA[b] = b, a
}

// nameOfB names an id of state b as state a does. An id that stands for nothing in a has a
// name that no id of a has.
func (p *pairs) nameOfB(b id) string {
	if a, ok := p.toA[b]; ok {
		return nameOfA(a)
	}
	return strconv.FormatUint(b.number, 10) + "'"
}

func nameOfA(a id) string { return strconv.FormatUint(a.number, 10) }

// pair finds the ids that stand for the same in both states.
func pair(a, b side) *pairs {
	p := &pairs{map[id]id{}, map[id]id{}}
	contentA, contentB := conjunctionContent(a.flows), conjunctionContent(b.flows)
	p.byContent(contentA, contentB, nil)
	p.byShare(contentA, contentB)
	votes := p.votes(a.flows, b.flows)
	for family, lists := range map[family][2][]entry{groups: {a.groups, b.groups}, meters: {a.meters, b.meters}} {
		p.byContent(entryContent(family, lists[0]), entryContent(family, lists[1]), votes)
	}
	p.byVotes(votes)
	p.byNumber(a, b)
	return p
}

// content is what the ids of a family stand for: sorted texts.
type content map[id][]string

// conjunctionContent returns, for each conjunction, the flows of its clauses and those that
// match on it.
func conjunctionContent(flows []flow) content {
	found := content{}
	for i := range flows {
		f := &flows[i]
		if !f.refers || !strings.Contains(f.Text, "conj") {
			continue
		}
		for _, at := range references(f.criteria) {
			if at.family == conjunctions {
				found[at] = append(found[at], rename(f.criteria, anyID)+"|"+f.cookie)
			}
		}
		for clause := range strings.SplitSeq(f.actions, "conjunction(") {
			number, rest, ok := strings.Cut(clause, ",")
			if n, err := strconv.ParseUint(number, 10, 32); ok && err == nil {
				dimension, _, _ := strings.Cut(rest, ")")
				at := id{conjunctions, n}
				found[at] = append(found[at], f.criteria+"|"+dimension)
			}
		}
	}
	for _, list := range found {
		slices.Sort(list)
	}
	return found
}

func entryContent(f family, entries []entry) content {
	found := content{}
	for _, e := range entries {
		found[id{f, uint64(e.ID)}] = []string{e.body}
	}
	return found
}

// byContent pairs ids with equal content. Of several that are equal, those with the most
// votes are paired, then those with the same number.
func (p *pairs) byContent(a, b content, votes map[[2]id]int) {
	equal := map[string][2][]id{}
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
				candidates = append(candidates, candidate{x, y, votes[[2]id{x, y}]})
			}
		}
		p.greedy(candidates)
	}
}

// byShare pairs conjunctions of which some flows differ: those that share the most.
func (p *pairs) byShare(a, b content) {
	with := map[string][]id{} // the unpaired ids of a, by a part of their content
	for at, list := range a {
		if _, paired := p.toB[at]; paired {
			continue
		}
		for _, part := range list {
			with[part] = append(with[part], at)
		}
	}
	shared := map[[2]id]int{}
	for at, list := range b {
		if _, paired := p.toA[at]; paired {
			continue
		}
		for _, part := range list {
			for _, other := range with[part] {
				shared[[2]id{other, at}]++
			}
		}
	}
	p.byVotes(shared)
}

// votes counts, for pairs of ids of groups and meters, the flows that differ in nothing
// else and refer to one in state a and to the other in state b.
func (p *pairs) votes(flowsA, flowsB []flow) map[[2]id]int {
	of := map[string]*flow{}
	for i := range flowsA {
		if f := &flowsA[i]; f.refers {
			criteria, _ := f.renamed(nameOfA)
			of[criteria] = f
		}
	}
	votes := map[[2]id]int{}
	for i := range flowsB {
		f := &flowsB[i]
		if !f.refers {
			continue
		}
		criteria, _ := f.renamed(p.nameOfB)
		other := of[criteria]
		if other == nil || rename(other.actions, anyID) != rename(f.actions, anyID) {
			continue
		}
		mine := references(f.actions)
		for i, x := range references(other.actions) {
			if x.family != conjunctions {
				votes[[2]id{x, mine[i]}]++
			}
		}
	}
	return votes
}

// byVotes pairs those that are left, by the votes for them.
func (p *pairs) byVotes(votes map[[2]id]int) {
	var candidates []candidate
	for both, n := range votes {
		candidates = append(candidates, candidate{both[0], both[1], n})
	}
	p.greedy(candidates)
}

// byNumber pairs the groups and meters that are left and have the same number.
func (p *pairs) byNumber(a, b side) {
	var candidates []candidate
	for family, lists := range map[family][2][]entry{groups: {a.groups, b.groups}, meters: {a.meters, b.meters}} {
		there := entryContent(family, lists[1])
		for at := range entryContent(family, lists[0]) {
			if _, ok := there[at]; ok {
				candidates = append(candidates, candidate{at, at, 0})
			}
		}
	}
	p.greedy(candidates)
}

// candidate is a pair that may be made.
type candidate struct {
	a, b  id
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
	for _, c := range candidates {
		_, usedA := p.toB[c.a]
		_, usedB := p.toA[c.b]
		if !usedA && !usedB {
			p.add(c.a, c.b)
		}
	}
}

func compareIDs(a, b id) int {
	return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.number, b.number))
}

func sortedIDs(all content) []id { return slices.SortedFunc(maps.Keys(all), compareIDs) }
