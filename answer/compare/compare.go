// Package compare compares two captures of nodes in names, so that nothing is reported that
// only has another number: a UUID, an OpenFlow port, a tunnel key, a conntrack zone, the id
// of a group, a meter or a conjunction. It needs no daemons.
package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Comparison holds the differences between two captures.
type Comparison struct {
	Old string `json:"old"` // what was compared, as the user named it
	New string `json:"new"`
	// Same is set if nothing differs.
	Same     bool      `json:"same"`
	Findings []Finding `json:"findings"`
	Remarks  []string  `json:"remarks,omitempty"`
	// Missing names what could not be compared, because only one side has it or it can't be
	// read.
	Missing []string `json:"missing,omitempty"`
}

// Change is what happened to an object.
type Change string

// The changes. An object that changed has other values.
const (
	Added   Change = "added"
	Gone    Change = "gone"
	Changed Change = "changed"
)

// Finding is an object that differs, with everything that follows from it.
type Finding struct {
	Kind   string `json:"kind"` // "switch", "ACL", "interface", "flow"
	Change Change `json:"change"`
	Node   string `json:"node,omitempty"` // that the object belongs to, "" for one of OVN
	// Zones are those of the object of OVN, if there are several zones.
	Zones []string `json:"zones,omitempty"`
	Name  string   `json:"name"`            // with its kind, as a user knows it
	Of    string   `json:"of,omitempty"`    // the switch, router or bridge that it is a part of
	Match string   `json:"match,omitempty"` // of a flow, in names
	// Columns are the values that differ of an object that changed.
	Columns []Column `json:"columns,omitempty"`
	// With counts the objects that were added or are gone together with this one, as its
	// parts, by kind.
	With map[string]int `json:"with,omitempty"`
	// Follows are differences that follow from this one.
	Follows []string `json:"follows,omitempty"`
	// Flows counts the flows that differ because of this one.
	Flows *FlowCount `json:"flows,omitempty"`
}

// Column is a value that differs. Of a set, Removed and Added hold the elements of only one
// side; of anything else, Old and New hold the values.
type Column struct {
	Name    string   `json:"name"` // "action", or "options:mtu" for an element of a map
	Old     string   `json:"old,omitempty"`
	New     string   `json:"new,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Added   []string `json:"added,omitempty"`
}

// FlowCount counts flows of all nodes. A flow that changed has other actions.
type FlowCount struct {
	Added   int `json:"added"`
	Gone    int `json:"gone"`
	Changed int `json:"changed"`
}

// Compare compares two captures.
func Compare(ctx context.Context, older, newer *Side) (*Comparison, error) {
	comparing := &comparer{old: older, new: newer, byName: map[string]*finding{}, result: &Comparison{Old: older.name, New: newer.name, Findings: []Finding{}}}
	comparing.remark(older.remarks...)
	comparing.remark(newer.remarks...)
	for _, side := range []*Side{older, newer} {
		for _, text := range side.lost {
			comparing.missing("what could not be read of " + side.name + ": " + text)
		}
	}
	if err := comparing.compareZones(ctx); err != nil {
		return nil, err
	}
	if err := comparing.compareNodes(ctx); err != nil {
		return nil, err
	}
	return comparing.finish(), ctx.Err()
}

// comparer holds what was found so far.
type comparer struct {
	old, new *Side
	zones    []*zonePair
	found    []*finding
	folded   []*finding          // that follow from another one
	byName   map[string]*finding // see findingNamed
	result   *Comparison
}

// finding is a Finding with what is needed to find the flows that follow from it.
type finding struct {
	Finding
	pair      pair
	databases *databasePair // of the database that the object is in; nil for a finding without one
	folded    *finding      // that this one follows from
	ports     []nodePort    // by whose names flows mention the object
}

// nodePort is a port of a node, by the name that it has in flows in names.
type nodePort struct{ node, name string }

func (c *comparer) remark(texts ...string) {
	for _, text := range texts {
		if !slices.Contains(c.result.Remarks, text) {
			c.result.Remarks = append(c.result.Remarks, text)
		}
	}
}

func (c *comparer) missing(text string) { c.result.Missing = append(c.result.Missing, text) }

// finish returns the comparison with its findings in order.
func (c *comparer) finish() *Comparison {
	for _, finding := range c.found {
		if finding.Flows != nil && *finding.Flows == (FlowCount{}) {
			finding.Flows = nil
		}
		c.result.Findings = append(c.result.Findings, finding.Finding)
	}
	c.joinZones()
	order := kinds()
	slices.SortStableFunc(c.result.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order.at(a.Kind), order.at(b.Kind)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	c.result.Same = len(c.result.Findings) == 0
	return c.result
}

// joinZones joins the findings that several zones have: each zone of a deployment has rows for the
// objects of all.
func (c *comparer) joinZones() {
	at := map[string]int{}
	var joined []Finding
	for _, found := range c.result.Findings {
		key := fmt.Sprintf("%q", []any{found.Kind, found.Change, found.Node, found.Name, found.Of, found.Match, found.Columns, found.With})
		i, known := at[key]
		if len(found.Zones) == 0 || !known {
			at[key] = len(joined)
			joined = append(joined, found)
			continue
		}
		first := &joined[i]
		first.Zones = append(first.Zones, found.Zones...)
		first.Flows = first.Flows.plus(found.Flows)
		for _, text := range found.Follows {
			if !slices.Contains(first.Follows, text) {
				first.Follows = append(first.Follows, text)
			}
		}
	}
	c.result.Findings = append([]Finding{}, joined...)
}

// plus returns the sum of two counts, either of which may be nil.
func (f *FlowCount) plus(other *FlowCount) *FlowCount {
	switch {
	case f == nil:
		return other
	case other == nil:
		return f
	}
	return &FlowCount{f.Added + other.Added, f.Gone + other.Gone, f.Changed + other.Changed}
}
