package flowdiff

import (
	"cmp"
	"slices"

	"ovs-offline/pkg/openflow"
)

// The kinds of entries.
const (
	KindFlow  = "flow"
	KindGroup = "group"
	KindMeter = "meter"
)

// Change is an entry that only one of two states has, or that differs between them.
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

// Diff lists the differences between two states. The lists have groups and meters first, and the flows
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
	sideA, sideB := sides(a, b)
	pairs := pair(sideA, sideB)
	var diff Diff
	users := [2]map[openflow.ID]string{usersOf(sideA.flows), usersOf(sideB.flows)}
	diff.compareEntries(KindGroup, groups, sideA.groups, sideB.groups, pairs, users)
	diff.compareEntries(KindMeter, meters, sideA.meters, sideB.meters, pairs, users)
	diff.compareFlows(sideA.flows, sideB.flows, pairs)
	for _, list := range [][]Change{diff.OnlyA, diff.OnlyB, diff.Changed} {
		slices.SortStableFunc(list, func(x, y Change) int { return cmp.Or(cmp.Compare(rank(x), rank(y)), compareTexts(x, y)) })
	}
	return diff
}

func rank(c Change) int { return slices.Index([]string{KindGroup, KindMeter, KindFlow}, c.Kind) }

// compareTexts orders flows by table and falling priority, and other entries by their texts.
func compareTexts(one, other Change) int {
	if one.Kind != KindFlow {
		return cmp.Compare(one.Text(), other.Text())
	}
	a, b := openflow.Flow{Text: one.Text()}.Key(), openflow.Flow{Text: other.Text()}.Key()
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Match, b.Match))
}

// compareEntries compares groups, or meters.
func (d *Diff) compareEntries(name string, kind openflow.IDKind, a, b []entry, pairs *pairs, users [2]map[openflow.ID]string) {
	inB := map[openflow.ID]entry{}
	for _, e := range b {
		inB[openflow.ID{Kind: kind, Number: e.ID}] = e
	}
	for _, known := range a {
		at := openflow.ID{Kind: kind, Number: known.ID}
		paired, ok := pairs.toB[at]
		other, there := inB[paired]
		switch {
		case !ok || !there:
			d.OnlyA = append(d.OnlyA, Change{Kind: name, A: known.Text, LineA: known.Line, User: users[0][at]})
		case known.body == other.body:
			d.Same++
		default:
			d.Changed = append(d.Changed, Change{Kind: name, A: known.Text, B: other.Text, LineA: known.Line, LineB: other.Line, Actions: true, User: users[0][at]})
		}
		if ok {
			delete(inB, paired)
		}
	}
	for at, e := range inB {
		d.OnlyB = append(d.OnlyB, Change{Kind: name, B: e.Text, LineB: e.Line, User: users[1][at]})
	}
}

// usersOf returns, for each group and meter, the first flow that refers to it.
func usersOf(flows []flow) map[openflow.ID]string {
	users := map[openflow.ID]string{}
	for i := range flows {
		current := &flows[i]
		if !current.refers {
			continue
		}
		for _, at := range openflow.IDs(current.actions) {
			if users[at] == "" {
				users[at] = current.Text
			}
		}
	}
	return users
}

func (d *Diff) compareFlows(a, b []flow, pairs *pairs) {
	type found struct {
		*flow
		actions string
	}
	inA := make(map[openflow.Key]found, len(a))
	for i := range a {
		criteria, actions := a[i].renamed(nameOfA)
		inA[criteria] = found{&a[i], actions}
	}
	for i := range b {
		current := &b[i]
		criteria, actions := current.renamed(pairs.nameOfB)
		other, ok := inA[criteria]
		delete(inA, criteria)
		switch {
		case !ok:
			d.OnlyB = append(d.OnlyB, Change{Kind: KindFlow, B: current.Text, LineB: current.Line})
		case other.key.Cookie == current.key.Cookie && other.actions == actions:
			d.Same++
			d.Flows++
		default:
			d.Changed = append(d.Changed, Change{Kind: KindFlow, A: other.Text, B: current.Text, LineA: other.Line, LineB: current.Line,
				Cookie: other.key.Cookie != current.key.Cookie, Actions: other.actions != actions})
		}
	}
	for _, f := range inA {
		d.OnlyA = append(d.OnlyA, Change{Kind: KindFlow, A: f.Text, LineA: f.Line})
	}
}
