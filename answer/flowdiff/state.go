// Package flowdiff compares two states of OVN's integration bridge by content, and names
// what differs by the logical flows and the northbound rows that it was made from.
//
// The ids of groups, meters and conjunctions are ovn-controller's choice and can differ
// from run to run. Two of them are the same if what they stand for is the same.
package flowdiff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
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
func Read(flows, groups, meters io.Reader) (state State, lost []openflow.Problem) {
	const maxLost = 1000
	for flow, problem := range openflow.Flows(flows) {
		if problem == nil {
			state.Flows = append(state.Flows, flow)
		} else if len(lost) < maxLost {
			lost = append(lost, *problem)
		}
	}
	var ofGroups, ofMeters []openflow.Problem
	state.Groups, ofGroups = openflow.Groups(groups)
	state.Meters, ofMeters = openflow.Meters(meters)
	lost = slices.DeleteFunc(slices.Concat(lost, ofGroups, ofMeters), func(p openflow.Problem) bool { return !p.Lost })
	return state, lost
}

// The kinds of ids that ovn-controller chooses.
const (
	groups       = openflow.GroupID
	meters       = openflow.MeterID
	conjunctions = openflow.ConjunctionID
)

// anyID returns the same for all ids of a kind.
func anyID(id openflow.ID) string { return fmt.Sprintf("?%d", id.Kind) }

// flow is a flow on its way through a comparison.
type flow struct {
	openflow.Flow
	key     openflow.Key
	actions string
	refers  bool // key or actions have references
}

func readFlows(list []openflow.Flow, spelling openflow.Canonical) []flow {
	flows := make([]flow, len(list))
	for i, f := range list {
		flows[i] = flow{f, spelling.Key(f), spelling.Actions(f.Actions()), openflow.MayHaveIDs(f.Text)}
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
	form := func(state State) (read side) {
		ofFlows.Ports, ofGroups.Ports = state.Ports, state.Ports
		read.flows = readFlows(state.Flows, ofFlows)
		for _, g := range state.Groups {
			read.groups = append(read.groups, entry{g, body(ofGroups.Group(g.Text))})
		}
		for _, m := range state.Meters {
			read.meters = append(read.meters, entry{m, body(m.Text)})
		}
		return read
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
func (f *flow) renamed(name func(openflow.ID) string) (criteria openflow.Key, actions string) {
	criteria = f.key.WithoutCookie()
	if !f.refers {
		return criteria, f.actions
	}
	criteria.Match, actions = openflow.RenameIDs(f.key.Match, name), openflow.RenameIDs(f.actions, name)
	if openflow.IsClause(actions) {
		list := strings.SplitAfter(actions, ")")
		for i := range list {
			list[i] = strings.TrimPrefix(list[i], ",")
		}
		slices.Sort(list)
		actions = strings.Join(list, ",")
	}
	return criteria, actions
}
