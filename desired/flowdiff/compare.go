package flowdiff

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
)

// The kinds of entries.
const (
	KindFlow  = "flow"
	KindGroup = "group"
	KindMeter = "meter"
)

// Change is an entry that only one state has, or that differs between two.
type Change struct {
	Kind string // KindFlow, KindGroup or KindMeter
	A, B string // the entry in the states, as ovs-ofctl dumped it; "" if the state does not have it
	// LineA and LineB are the lines of the entry in the dumps, 0 for none.
	LineA, LineB int
	// Cookie is set if the cookies of a flow differ, Actions if its actions do. Of a group or
	// a meter that differs, Actions is set.
	Cookie, Actions bool
	// User is a flow that refers to a group or a meter, "" for none.
	User string
}

// Text returns the entry in the state that has it, in b if both have.
func (c Change) Text() string { return cmp.Or(c.B, c.A) }

// Diff is in what two states differ. The lists have groups and meters first, and the flows
// by table, priority and match.
type Diff struct {
	OnlyA, OnlyB, Changed []Change
	Same                  int // entries that are equal
	Flows                 int // flows that are equal
}

// Equal reports whether nothing differs.
func (d *Diff) Equal() bool { return len(d.OnlyA)+len(d.OnlyB)+len(d.Changed) == 0 }

// Compare compares two states.
func Compare(a, b State) Diff {
	x, y := sides(a, b)
	p := pair(x, y)
	var d Diff
	users := [2]map[id]string{usersOf(x.flows), usersOf(y.flows)}
	d.compareEntries(KindGroup, groups, x.groups, y.groups, p, users)
	d.compareEntries(KindMeter, meters, x.meters, y.meters, p, users)
	d.compareFlows(x.flows, y.flows, p)
	for _, list := range [][]Change{d.OnlyA, d.OnlyB, d.Changed} {
		slices.SortStableFunc(list, func(x, y Change) int { return cmp.Or(cmp.Compare(rank(x), rank(y)), compareTexts(x, y)) })
	}
	return d
}

func rank(c Change) int { return slices.Index([]string{KindGroup, KindMeter, KindFlow}, c.Kind) }

// compareTexts orders flows by table and falling priority, and other entries by their texts.
func compareTexts(x, y Change) int {
	if x.Kind != KindFlow {
		return cmp.Compare(x.Text(), y.Text())
	}
	_, a := openflow.Flow{Text: x.Text()}.Identity()
	_, b := openflow.Flow{Text: y.Text()}.Identity()
	tableA, restA, _ := strings.Cut(a, "|")
	tableB, restB, _ := strings.Cut(b, "|")
	priorityA, matchA, _ := strings.Cut(restA, "|")
	priorityB, matchB, _ := strings.Cut(restB, "|")
	return cmp.Or(compareNumbers(tableA, tableB), compareNumbers(priorityB, priorityA), cmp.Compare(matchA, matchB))
}

// compareNumbers compares decimal numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// compareEntries compares groups, or meters.
func (d *Diff) compareEntries(kind string, f family, a, b []entry, p *pairs, users [2]map[id]string) {
	inB := map[id]entry{}
	for _, e := range b {
		inB[id{f, uint64(e.ID)}] = e
	}
	for _, e := range a {
		at := id{f, uint64(e.ID)}
		paired, ok := p.toB[at]
		other, there := inB[paired]
		switch {
		case !ok || !there:
			d.OnlyA = append(d.OnlyA, Change{Kind: kind, A: e.Text, LineA: e.Line, User: users[0][at]})
		case e.body == other.body:
			d.Same++
		default:
			d.Changed = append(d.Changed, Change{Kind: kind, A: e.Text, B: other.Text, LineA: e.Line, LineB: other.Line, Actions: true, User: users[0][at]})
		}
		if ok {
			delete(inB, paired)
		}
	}
	for at, e := range inB {
		d.OnlyB = append(d.OnlyB, Change{Kind: kind, B: e.Text, LineB: e.Line, User: users[1][at]})
	}
}

// usersOf returns, for each group and meter, the first flow that refers to it.
func usersOf(flows []flow) map[id]string {
	users := map[id]string{}
	for i := range flows {
		f := &flows[i]
		if !f.refers {
			continue
		}
		for _, at := range references(f.actions) {
			if users[at] == "" {
				users[at] = f.Text
			}
		}
	}
	return users
}

func (d *Diff) compareFlows(a, b []flow, p *pairs) {
	type found struct {
		*flow
		actions string
	}
	inA := make(map[string]found, len(a))
	for i := range a {
		criteria, actions := a[i].renamed(nameOfA)
		inA[criteria] = found{&a[i], actions}
	}
	for i := range b {
		f := &b[i]
		criteria, actions := f.renamed(p.nameOfB)
		other, ok := inA[criteria]
		delete(inA, criteria)
		switch {
		case !ok:
			d.OnlyB = append(d.OnlyB, Change{Kind: KindFlow, B: f.Text, LineB: f.Line})
		case other.cookie == f.cookie && other.actions == actions:
			d.Same++
			d.Flows++
		default:
			d.Changed = append(d.Changed, Change{Kind: KindFlow, A: other.Text, B: f.Text, LineA: other.Line, LineB: f.Line,
				Cookie: other.cookie != f.cookie, Actions: other.actions != actions})
		}
	}
	for _, f := range inA {
		d.OnlyA = append(d.OnlyA, Change{Kind: KindFlow, A: f.Text, LineA: f.Line})
	}
}
