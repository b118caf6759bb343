package whatif

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove"
	"ovs-offline/internal/versions"
)

// Result is the effect of a change.
type Result struct {
	Change  Change        `json:"change,omitempty"`
	Printed string        `json:"printed,omitempty"` // by ovn-nbctl
	Running versions.Pair `json:"running"`           // the versions that computed the flows
	Nodes   []NodeResult  `json:"nodes"`
	Trace   *Traces       `json:"trace,omitempty"`
	Doubts  []string      `json:"doubts,omitempty"`  // reasons why the databases may not be of the same deployment or moment
	Assumed []string      `json:"assumed,omitempty"` // what was not recorded and can't be computed
	Remarks []string      `json:"remarks,omitempty"`
}

// Differs reports whether the change has an effect on a node.
func (r *Result) Differs() bool {
	return slices.ContainsFunc(r.Nodes, func(node NodeResult) bool { return !node.Equal() })
}

// NodeResult is the effect of a change on the flows, groups and meters of the integration bridge of
// a node.
type NodeResult struct {
	Node string `json:"node"`
	Changes
	// Meaning is what the changes do to packets: their Before is what becomes of these without the change, After with it.
	Meaning *prove.Meaning `json:"meaning,omitempty"`
}

// Changes are the entries that differ.
type Changes struct {
	Added   []Difference `json:"added"`
	Removed []Difference `json:"removed"`
	Changed []Difference `json:"changed"`
	Same    int          `json:"same"`
	// Remade counts flows whose cookie alone changes: ovn-northd replaced the logical flow
	// by one that does the same.
	Remade int `json:"remade,omitempty"`
}

// Equal reports whether nothing changes.
func (c *Changes) Equal() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Difference is the entries that change and have one cause.
type Difference = flowdiff.Difference[Entry]

// Entry is a flow, a group or a meter that changes.
type Entry struct {
	Kind   string `json:"kind"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// compareNode compares the flows, groups and meters of a node at two moments.
func compareNode(node string, before, after moment) (result NodeResult, err error) {
	result.Node = node
	old, now := before.states[node], after.states[node]
	diff := flowdiff.Compare(old, now)
	result.Same = diff.Same
	var changed []flowdiff.Change
	for _, change := range diff.Changed {
		if !change.Actions || change.Kind == flowdiff.KindFlow && flowdiff.WithoutCookies(change.A) == flowdiff.WithoutCookies(change.B) {
			result.Remade++
		} else {
			changed = append(changed, change)
		}
	}
	diff.Changed = changed
	result.Added, result.Removed, result.Changed = []Difference{}, []Difference{}, []Difference{}
	if diff.Equal() {
		return result, nil
	}
	was, err := flowdiff.NewNames(before.nb, before.sb, old.Flows)
	if err != nil {
		return result, err
	}
	is, err := flowdiff.NewNames(after.nb, after.sb, now.Flows)
	if err != nil {
		return result, err
	}
	for _, part := range []struct {
		changes []flowdiff.Change
		into    *[]Difference
	}{{diff.OnlyB, &result.Added}, {diff.OnlyA, &result.Removed}, {diff.Changed, &result.Changed}} {
		groups, err := flowdiff.Name(part.changes, was, is)
		if err != nil {
			return result, err
		}
		for _, g := range groups {
			*part.into = append(*part.into, flowdiff.DifferenceOf(g, entryOf))
		}
	}
	return result, nil
}

func entryOf(c flowdiff.Change) Entry { return Entry{Kind: c.Kind, Before: c.A, After: c.B} }

// EntryKind implements flowdiff.Entry.
func (e Entry) EntryKind() string { return e.Kind }

// Summary returns what changes in one sentence.
func (c *Changes) Summary() string {
	text := "nothing changes"
	if !c.Equal() {
		var parts []string
		for _, part := range []struct {
			list []Difference
			how  string
		}{{c.Added, "added"}, {c.Removed, "removed"}, {c.Changed, "changed"}} {
			if len(part.list) > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", flowdiff.CountEntries(part.list), part.how))
			}
		}
		text = strings.Join(parts, ", ")
	}
	text += fmt.Sprintf("; %d are the same", c.Same)
	if c.Remade > 0 {
		text += fmt.Sprintf(", and %d only get another cookie", c.Remade)
	}
	return text
}
