package flowdiff

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
)

// Line is a flow in the form of Shared.
type Line struct {
	Head    string // its table, priority and match
	Actions string
}

// Text returns the flow as ovs-ofctl add-flows takes it.
func (l Line) Text() string { return l.Head + " actions=" + l.Actions }

// Form is a state in the form of Shared.
type Form struct {
	Flows  []Line
	Groups []openflow.Entry
	Meters []openflow.Entry
}

// Shared returns two states in one form, in which groups, meters and conjunctions of both have the same id if, and only if, their content is
// the same. A conjunction's content is its clauses and its flows. Cookies are left out.
func Shared(a, b State) (x, y Form) {
	sideA, sideB := sides(a, b)
	r := &register{numbers: map[string]uint32{}}
	return r.form(sideA), r.form(sideB)
}

// register gives numbers to the content of groups, meters and conjunctions.
type register struct{ numbers map[string]uint32 }

func (r *register) number(kind openflow.IDKind, content string) uint32 {
	key := fmt.Sprint(kind, " ", content)
	if _, known := r.numbers[key]; !known {
		r.numbers[key] = uint32(len(r.numbers) + 1)
	}
	return r.numbers[key]
}

// form writes a state with the numbers of the register.
func (r *register) form(s side) (made Form) {
	numbers := map[openflow.ID]uint32{}
	name := func(id openflow.ID) string {
		if _, known := numbers[id]; !known { // the state does not have it
			numbers[id] = r.number(id.Kind, fmt.Sprintf("unknown %d", id.Number))
		}
		return strconv.FormatUint(uint64(numbers[id]), 10)
	}
	add := func(kind openflow.IDKind, list []entry, word string) (named []openflow.Entry) {
		known := map[uint32]bool{}
		for _, e := range list {
			content := openflow.RenameIDs(e.body, name)
			number := r.number(kind, content)
			numbers[openflow.ID{Kind: kind, Number: e.ID}] = number
			if !known[number] {
				known[number] = true
				named = append(named, openflow.Entry{ID: number, Text: fmt.Sprintf("%s=%d,%s", word, number, content)})
			}
		}
		return named
	}
	made.Meters = add(meters, s.meters, "meter")
	made.Groups = add(groups, s.groups, "group_id")
	content := conjunctionsOf(s.flows, name)
	for _, id := range slices.Sorted(maps.Keys(content)) {
		slices.Sort(content[id])
		numbers[openflow.ID{Kind: conjunctions, Number: id}] = r.number(conjunctions, strings.Join(content[id], "\n"))
	}
	for _, f := range s.flows {
		key, actions := f.renamed(name)
		head := fmt.Sprintf("table=%d,priority=%d", key.Table, key.Priority)
		if key.Match != "" {
			head += "," + key.Match
		}
		made.Flows = append(made.Flows, Line{head, actions})
	}
	return made
}

// conjunctionsOf returns the clauses and flows of each conjunction. name names what they refer to.
func conjunctionsOf(list []flow, name func(openflow.ID) string) map[uint32][]string {
	found := map[uint32][]string{}
	for _, f := range list {
		if !f.refers {
			continue
		}
		for id, dimension := range openflow.Clauses(f.actions) {
			found[id] = append(found[id], fmt.Sprint(f.key.Table, " ", f.key.Priority, " ", f.key.Match, " ", dimension))
		}
		for _, id := range openflow.IDs(f.key.Match) {
			ofID, actions := f.renamed(func(of openflow.ID) string {
				if of.Kind == conjunctions {
					return anyID(of)
				}
				return name(of)
			})
			found[id.Number] = append(found[id.Number], fmt.Sprint(ofID.Table, " ", ofID.Priority, " ", ofID.Match, " ", actions))
		}
	}
	return found
}
