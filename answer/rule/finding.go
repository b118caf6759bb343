// Package rule has what every rule of a check works with: the case that it looks at, and the findings
// that it makes.
package rule

import (
	"cmp"
	"slices"
	"time"
)

// Severity is how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // packets are lost, or something does not work
	Warning Severity = "warning" // it works, and is slow, at risk, or not as configured
)

// Finding is one thing that is wrong.
type Finding struct {
	Rule     string   `json:"rule"` // the name of the rule
	Severity Severity `json:"severity"`
	// Nodes are the nodes that it was found on; none for what concerns a whole deployment.
	Nodes []string `json:"nodes,omitempty"`
	// What says in one sentence what is wrong, in the names that users know, with the evidence.
	What string `json:"what"`
	// Evidence lists where it was read: rows, lines of logs, outputs of commands.
	Evidence []string  `json:"evidence,omitempty"`
	At       time.Time `json:"at,omitzero"` // when it was so, or happened last; zero if that is not known
	// Follows says what follows from it for packets or for the user.
	Follows string `json:"follows"`
	// Next are the steps to take next: first commands of the program, then others.
	Next []Next `json:"next,omitempty"`
	// Sources are the manual, the bug or the source file that the rule comes from.
	Sources []string `json:"sources,omitempty"`
	// Explains are what follows from this finding, and is listed nowhere else.
	Explains []Consequence `json:"explains,omitempty"`
	// Weight orders findings of one severity: what concerns more traffic is more. 0 is usual.
	Weight int `json:"-"`
	// Symptom reports that the finding rather follows from others than causes them: of its severity, it is listed last.
	Symptom bool `json:"-"`
	// Causes names the rules whose findings follow from this one if they are about the same nodes, or about the same port where Port is set.
	Causes []string `json:"-"`
	// Port is the UUID of the row of Port_Binding that the finding is about, "" for none.
	Port string `json:"-"`
}

// Consequence is a finding that follows from another one.
type Consequence struct {
	Rule  string   `json:"rule"`
	Nodes []string `json:"nodes,omitempty"`
	What  string   `json:"what"`
}

// Explain returns findings in their order, and each one that follows from another one under that one. What follows from several is under the
// first of them. No rule may be the cause of its own cause.
func Explain(findings []Finding) (list []Finding) {
	Sort(findings) // the rules that look at the same time find in any order
	cause := func(i int) int {
		return slices.IndexFunc(findings, func(c Finding) bool { return slices.Contains(c.Causes, findings[i].Rule) && c.covers(findings[i]) })
	}
	explained := make([][]Consequence, len(findings))
	for i, f := range findings {
		first := i
		for next := cause(first); next >= 0; next = cause(first) {
			first = next
		}
		if first != i {
			explained[first] = append(explained[first], Consequence{f.Rule, f.Nodes, f.What})
		}
	}
	for i, f := range findings {
		if cause(i) < 0 {
			f.Explains = explained[i]
			list = append(list, f)
		}
	}
	Sort(list)
	return list
}

// covers reports whether a finding is about the port of another one, or without a port, about all of its nodes.
func (f Finding) covers(other Finding) bool {
	if f.Port != "" {
		return f.Port == other.Port
	}
	return len(other.Nodes) > 0 && !slices.ContainsFunc(other.Nodes, func(node string) bool { return !slices.Contains(f.Nodes, node) })
}

// Placed returns the finding with its node in each step, if it is about one node. A step that reads an OVN database gets the only node of
// the zone instead. Placed leaves out the steps for which without returns true.
func (f Finding) Placed(zone []string, without func(step Next) bool) Finding {
	var steps []Next
	for _, step := range f.Next {
		nodes := f.Nodes
		if step.readsOVN() {
			nodes = zone
		}
		if len(nodes) == 1 {
			step = step.On(nodes[0])
		}
		if !without(step) {
			steps = append(steps, step)
		}
	}
	f.Next = steps
	return f
}

// OnNode returns the Nodes of a finding on a node, none for the node "" of a set that has only one.
func OnNode(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// Sort sorts findings, the worst first, of these the causes before the symptoms, and of these the ones that explain others.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(b.Explains), len(a.Explains)), cmp.Compare(b.Weight, a.Weight),
			cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.What, b.What))
	})
}

// rank orders findings by their severity, symptoms last.
func rank(f Finding) int {
	rank := 2 * slices.Index([]Severity{Error, Warning}, f.Severity)
	if f.Symptom {
		rank++
	}
	return rank
}
