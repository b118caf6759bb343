package whatif

import (
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/versions"
)

// Result is what a change does.
type Result struct {
	Change  Change        `json:"change,omitempty"`
	Printed string        `json:"printed,omitempty"` // by ovn-nbctl
	Running versions.Pair `json:"running"`           // the versions that computed the flows
	Nodes   []NodeResult  `json:"nodes"`
	Trace   *Traces       `json:"trace,omitempty"`
	Doubts  []string      `json:"doubts,omitempty"`  // why the change may not be one of the deployment
	Assumed []string      `json:"assumed,omitempty"` // what was not recorded and can't be computed
	Remarks []string      `json:"remarks,omitempty"`
}

// NodeResult is what a change does to the flows, groups and meters of the integration
// bridge of a node.
type NodeResult struct {
	Node    string       `json:"node"`
	Added   []Difference `json:"added"`
	Removed []Difference `json:"removed"`
	Changed []Difference `json:"changed"`
	Same    int          `json:"same"`
	// Remade counts flows whose cookie alone changes: ovn-northd replaced the logical flow
	// by one that does the same.
	Remade int `json:"remade,omitempty"`
}

// Equal reports whether nothing changes.
func (n *NodeResult) Equal() bool { return len(n.Added)+len(n.Removed)+len(n.Changed) == 0 }

// Difference is the entries that change and have one cause.
type Difference struct {
	flowdiff.Cause
	What      string   `json:"what"` // Cause, stages and datapaths in one sentence
	Stages    []string `json:"stages,omitempty"`
	Datapaths []string `json:"datapaths,omitempty"`
	Count     int      `json:"count"`
	Entries   []Entry  `json:"entries"`
}

// Entry is a flow, a group or a meter that changes.
type Entry struct {
	Kind   string `json:"kind"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// compareNode compares what a node has at two moments.
func compareNode(node string, before, after moment) (r NodeResult, err error) {
	r.Node = node
	a, b := before.states[node], after.states[node]
	d := flowdiff.Compare(a, b)
	r.Same = d.Same
	var changed []flowdiff.Change
	for _, c := range d.Changed {
		if !c.Actions || c.Kind == flowdiff.KindFlow && withoutCookies(c.A) == withoutCookies(c.B) {
			r.Remade++
		} else {
			changed = append(changed, c)
		}
	}
	d.Changed = changed
	r.Added, r.Removed, r.Changed = []Difference{}, []Difference{}, []Difference{}
	if d.Equal() {
		return r, nil
	}
	was, err := flowdiff.NewNames(before.nb, before.sb, a.Flows)
	if err != nil {
		return r, err
	}
	is, err := flowdiff.NewNames(after.nb, after.sb, b.Flows)
	if err != nil {
		return r, err
	}
	for _, part := range []struct {
		changes []flowdiff.Change
		into    *[]Difference
	}{{d.OnlyB, &r.Added}, {d.OnlyA, &r.Removed}, {d.Changed, &r.Changed}} {
		groups, err := flowdiff.Name(part.changes, was, is)
		if err != nil {
			return r, err
		}
		for _, g := range groups {
			*part.into = append(*part.into, differenceOf(g))
		}
	}
	return r, nil
}

// cookies matches the cookie of a flow, and those of flows that its actions learn.
var cookies = regexp.MustCompile(`\bcookie=0x[0-9a-f]+,`)

func withoutCookies(flow string) string { return cookies.ReplaceAllString(flow, "") }

func differenceOf(g flowdiff.Group) Difference {
	d := Difference{Cause: g.Cause, What: g.String(), Stages: g.Stages, Datapaths: g.Datapaths, Count: len(g.Changes)}
	for _, c := range g.Changes {
		d.Entries = append(d.Entries, Entry{Kind: c.Kind, Before: c.A, After: c.B})
	}
	return d
}

// Summary returns what changes on a node in one sentence.
func (n *NodeResult) Summary() string {
	text := "nothing changes"
	if !n.Equal() {
		var parts []string
		for _, p := range []struct {
			list []Difference
			how  string
		}{{n.Added, "added"}, {n.Removed, "removed"}, {n.Changed, "changed"}} {
			if len(p.list) > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", kinds(p.list), p.how))
			}
		}
		text = strings.Join(parts, ", ")
	}
	text += fmt.Sprintf("; %d are the same", n.Same)
	if n.Remade > 0 {
		text += fmt.Sprintf(", and %d only get another cookie", n.Remade)
	}
	return text
}

// kinds counts entries: "12 flows, 1 group".
func kinds(list []Difference) string {
	counts := map[string]int{}
	for _, d := range list {
		for _, e := range d.Entries {
			counts[e.Kind]++
		}
	}
	var parts []string
	for _, kind := range []string{flowdiff.KindFlow, flowdiff.KindGroup, flowdiff.KindMeter} {
		switch n := counts[kind]; {
		case n == 1:
			parts = append(parts, "1 "+kind)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// String returns the difference in one line: "12 flows of ACL ...".
func (d *Difference) String() string { return kinds([]Difference{*d}) + " of " + d.What }
