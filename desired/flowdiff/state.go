// Package flowdiff compares two states of OVN's integration bridge by content, and names
// what differs by the logical flows and the northbound rows that it was made from.
//
// The ids of groups, meters and conjunctions are ovn-controller's choice and can differ
// from run to run. Two of them are the same if what they stand for is the same.
package flowdiff

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
)

// State is what the tables of a bridge hold.
type State struct {
	Flows  []openflow.Flow
	Groups []openflow.Entry
	Meters []openflow.Entry
	// OfFlows and OfGroups are the versions of OpenFlow of the dumps; the zero Version is not
	// known.
	OfFlows, OfGroups openflow.Version
	// Ports are the numbers of the ports by their openflow.PortName, for dumps with names.
	Ports map[string]int
}

// Read reads a state from the output of ovs-ofctl dump-flows, dump-groups and dump-meters.
// lost are the lines that held an entry and can't be used.
func Read(flows, groups, meters io.Reader) (s State, lost []openflow.Problem) {
	const maxLost = 1000
	for flow, problem := range openflow.Flows(flows) {
		if problem == nil {
			s.Flows = append(s.Flows, flow)
		} else if len(lost) < maxLost {
			lost = append(lost, *problem)
		}
	}
	var ofGroups, ofMeters []openflow.Problem
	s.Groups, ofGroups = openflow.Groups(groups)
	s.Meters, ofMeters = openflow.Meters(meters)
	lost = slices.DeleteFunc(slices.Concat(lost, ofGroups, ofMeters), func(p openflow.Problem) bool { return !p.Lost })
	return s, lost
}

// family is a kind of things with ids that ovn-controller chooses.
type family int

const (
	groups family = iota
	meters
	conjunctions
	families
)

// reference matches an id in the text of a flow, with what precedes it.
var reference = regexp.MustCompile(`\b(group:|meter:|meter_id=|conjunction\(|conj_id=)([0-9]+)`)

// familyOf returns the family of an id by what precedes it in a text.
func familyOf(before string) family {
	switch before[0] {
	case 'g':
		return groups
	case 'm':
		return meters
	}
	return conjunctions
}

// id identifies a group, a meter or a conjunction of one state.
type id struct {
	family family
	number uint64
}

// nested matches the head of an action of type NXAST_CONTROLLER2 in the userdata of an action
// controller: ovn-controller executes it when it gets the packet. Its length is in the group.
var nested = regexp.MustCompile(`ff\.ff\.([0-9a-f]{2}\.[0-9a-f]{2})\.00\.00\.23\.20\.00\.25(?:\.00){6}\.`)

// nestedMeters returns the offsets of the numbers of meters in the userdata of a flow: of the
// properties NXAC2PT_METER_ID, four bytes each (lib/ofp-actions.c of Open vSwitch).
func nestedMeters(text string) (offsets []int) {
	const digits, head = len("00."), 16 // of a byte; bytes of the action before its properties
	for _, at := range nested.FindAllStringSubmatchIndex(text, -1) {
		length, _ := number(text[at[2]:at[3]])
		end := min(len(text), at[0]+int(length)*digits)
		for property := at[0] + head*digits; property+8*digits-1 <= end; {
			kind, ok := number(text[property : property+5])
			size, sized := number(text[property+6 : property+11])
			if !ok || !sized || size < 4 {
				break
			}
			if kind == 5 && size == 8 {
				offsets = append(offsets, property+4*digits)
			}
			property += int(size+7) / 8 * 8 * digits
		}
	}
	return offsets
}

// number reads bytes as ovs-ofctl prints userdata: "00.00.00.05".
func number(bytes string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(strings.ReplaceAll(bytes, ".", ""), 16, 32)
	return n, err == nil
}

// mayRefer reports whether a text may have references. To search for the words first is
// many times faster than the pattern.
func mayRefer(text string) bool {
	return strings.Contains(text, "group:") || strings.Contains(text, "meter") || strings.Contains(text, "conj")
}

// rename replaces each id in a text by what name returns.
func rename(text string, name func(id) string) string {
	for _, at := range slices.Backward(nestedMeters(text)) {
		const width = len("00.00.00.05")
		if n, ok := number(text[at : at+width]); ok {
			text = text[:at] + name(id{meters, n}) + text[at+width:]
		}
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		part := reference.FindStringSubmatch(match)
		n, err := strconv.ParseUint(part[2], 10, 32)
		if err != nil {
			return match
		}
		return part[1] + name(id{familyOf(part[1]), n})
	})
}

// references returns the ids in a text, in their order.
func references(text string) (found []id) {
	for _, part := range reference.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseUint(part[2], 10, 32); err == nil {
			found = append(found, id{familyOf(part[1]), n})
		}
	}
	for _, at := range nestedMeters(text) {
		if n, ok := number(text[at : at+len("00.00.00.05")]); ok {
			found = append(found, id{meters, n})
		}
	}
	return found
}

// anyID returns the same for all ids of a family.
func anyID(i id) string { return fmt.Sprintf("?%d", i.family) }

// flow is a flow on its way through a comparison.
type flow struct {
	openflow.Flow
	cookie   string // "" for 0
	criteria string // table, priority and match
	actions  string
	refers   bool // criteria or actions have references
}

func readFlows(list []openflow.Flow, spelling openflow.Canonical) []flow {
	flows := make([]flow, len(list))
	for i, f := range list {
		cookie, criteria := spelling.Identity(f)
		flows[i] = flow{f, cookie, criteria, spelling.Actions(f.Actions()), mayRefer(f.Text)}
	}
	return flows
}

// spellings returns the forms in which the flows, and the groups, of two states are compared.
func spellings(a, b State) (ofFlows, ofGroups openflow.Canonical) {
	ofFlows.Oldest, ofGroups.Oldest = openflow.OlderOf(a.OfFlows, b.OfFlows), openflow.OlderOf(a.OfGroups, b.OfGroups)
	ofGroups.NoBucketProperties = !a.OfGroups.HasBucketProperties() || !b.OfGroups.HasBucketProperties()
	return ofFlows, ofGroups
}

// side is a state in its canonical form.
type side struct {
	flows          []flow
	groups, meters []entry
}

// entry is a group or a meter with its canonical form, without the id.
type entry struct {
	openflow.Entry
	body string
}

// sides returns two states in one form.
func sides(a, b State) (x, y side) {
	ofFlows, ofGroups := spellings(a, b)
	form := func(s State) (f side) {
		ofFlows.Ports, ofGroups.Ports = s.Ports, s.Ports
		f.flows = readFlows(s.Flows, ofFlows)
		for _, g := range s.Groups {
			f.groups = append(f.groups, entry{g, body(ofGroups.Group(g.Text))})
		}
		for _, m := range s.Meters {
			f.meters = append(f.meters, entry{m, body(m.Text)})
		}
		return f
	}
	return form(a), form(b)
}

// body returns the text of a group or a meter without its id.
func body(text string) string {
	end := strings.IndexAny(text, ", ")
	return strings.TrimLeft(text[max(end, 0):], ", ")
}

// renamed returns the flow's criteria and actions with other ids. A flow of several
// conjunctions has them in any order.
func (f *flow) renamed(name func(id) string) (criteria, actions string) {
	if !f.refers {
		return f.criteria, f.actions
	}
	criteria, actions = rename(f.criteria, name), rename(f.actions, name)
	if strings.HasPrefix(actions, "conjunction(") {
		list := strings.SplitAfter(actions, ")")
		for i := range list {
			list[i] = strings.TrimPrefix(list[i], ",")
		}
		slices.Sort(list)
		actions = strings.Join(list, ",")
	}
	return criteria, actions
}
