package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
)

// Document is the JSON output of a command about the nodes of a set.
type Document struct {
	Folder string            `json:"folder"`
	Nodes  map[string]any    `json:"nodes"`            // what the command prints of the node's own workdir, by name
	Failed map[string]string `json:"failed,omitempty"` // the errors of the other nodes
	// Databases and Remarks are about several nodes.
	Databases []Database `json:"databases,omitempty"`
	Remarks   []string   `json:"remarks,omitempty"`
}

// DocumentOf returns the document with the outcomes of an action on each node.
func DocumentOf[T any](s *Set, outcomes []Outcome[T]) Document {
	d := Document{Folder: s.Folder(), Nodes: map[string]any{}, Remarks: s.Remarks()}
	for _, o := range outcomes {
		if o.Err == nil {
			d.Nodes[o.Node.Name] = o.Value
			continue
		}
		if d.Failed == nil {
			d.Failed = map[string]string{}
		}
		d.Failed[o.Node.Name] = o.Err.Error()
	}
	return d
}

// Failures returns the errors of the nodes, with the names of nodes of a folder.
func Failures[T any](s *Set, outcomes []Outcome[T]) (errs []error) {
	for _, o := range outcomes {
		switch {
		case o.Err != nil && s.Alone():
			errs = append(errs, o.Err)
		case o.Err != nil:
			errs = append(errs, fmt.Errorf("node %s: %w", o.Node.Name, o.Err))
		}
	}
	return errs
}

// Label returns the beginning of a line about a node: the name of a node of a folder.
func (s *Set) Label(n *Node) string {
	if s.Alone() {
		return ""
	}
	return n.Name + ": "
}

// Values returns the values of the nodes that did not fail, with the nodes.
func Values[T any](outcomes []Outcome[T]) (found []Outcome[T]) {
	for _, o := range outcomes {
		if o.Err == nil {
			found = append(found, o)
		}
	}
	return found
}

// Comparison holds the differences between the OVN databases of the nodes of a set.
type Comparison struct {
	databases []Database
	remarks   []string
	err       error
}

// CompareDatabases compares the OVN databases of the nodes.
func (s *Set) CompareDatabases(ctx context.Context) Comparison {
	databases, problems, err := s.Databases(ctx)
	return Comparison{databases, append(problems, Sentences(databases)...), err}
}

// printCopies prints a line for each copy of a database.
func printCopies(p *show.Page, databases []Database) {
	if len(databases) == 0 {
		return
	}
	p.Printf("\n")
	t := p.Table("database", "nodes", "last change", "nb_cfg", "id")
	for _, d := range databases {
		for _, c := range d.Copies {
			t.AppendRow([]any{d.Kind.Title(), terminal.Escape(strings.Join(c.Nodes, ", ")), show.Time(c.Changed), c.NBCfg, terminal.Escape(d.ID)})
		}
	}
	t.Render()
}

// Add adds the comparison to the document of the nodes.
func (c Comparison) Add(d *Document) error {
	d.Databases, d.Remarks = c.databases, append(d.Remarks, c.remarks...)
	return c.err
}

// PrintDatabases prints a line for each copy of a database, and warnings about the nodes.
func (d Document) PrintDatabases(p *show.Page) {
	printCopies(p, d.Databases)
	p.WarnEach("", d.Remarks)
}

// PrintReports prints a line for the report of each node.
func PrintReports(p *show.Page, outcomes []Outcome[*report.Report]) {
	t := p.Table("node", "result", "restored", "rejected", "different", "placeholders", "lost", "recorded", "running")
	for _, outcome := range outcomes {
		name, r := terminal.Escape(outcome.Node.Name), outcome.Value
		if outcome.Err != nil {
			t.AppendRow([]any{name, stateOf(outcome.Err), "", "", "", "", "", "", ""})
			continue
		}
		t.AppendRow([]any{name, r.Summary(), r.RestoredShare(),
			r.Total(func(c *report.Counts) int { return c.Rejected }), r.Total(func(c *report.Counts) int { return c.Different }),
			r.Total(func(c *report.Counts) int { return c.Placeholders }), len(r.Lost), show.Versions(r.Recorded), show.Versions(r.Running)})
	}
	t.Render()
}

// PrintEach prints something about each node that did not fail. If there are several nodes, a
// line with its name comes first.
func PrintEach[T any](p *show.Page, outcomes []Outcome[T], print func(p *show.Page, value T)) {
	for _, f := range Values(outcomes) {
		if len(outcomes) > 1 {
			p.Headline("Node %s", terminal.Escape(f.Node.Name))
		}
		print(p, f.Value)
	}
}

// PrintStatuses prints a line for each node of a set, or the whole status of the only one.
func PrintStatuses(p *show.Page, s *Set, outcomes []Outcome[replica.Status]) {
	if len(s.Nodes()) == 1 {
		PrintEach(p, outcomes, func(p *show.Page, v replica.Status) { v.Print(p) })
		return
	}
	p.Printf("Nodes in %s\n\n", terminal.Escape(s.Folder()))
	t := p.Table("node", "state", "runtime", "daemons", "flows loaded", "flows now", "problem")
	for _, outcome := range outcomes {
		t.AppendRow(statusRow(outcome))
	}
	t.Render()
	p.WarnEach("", s.Remarks())
}

// statusRow returns the line about a node.
func statusRow(outcome Outcome[replica.Status]) []any {
	name := terminal.Escape(outcome.Node.Name)
	if outcome.Err != nil {
		return []any{name, stateOf(outcome.Err), "", "", "", "", terminal.Escape(outcome.Err.Error())}
	}
	s, answering, loaded, now, problem := outcome.Value, 0, 0, 0, ""
	for _, d := range s.Daemons {
		if d.Answers {
			answering++
		}
		if d.Problem != "" {
			problem = cmp.Or(problem, d.Role+": "+d.Problem)
		}
	}
	for _, f := range s.Flows {
		loaded, now = loaded+f.Loaded, now+f.Now
		problem = cmp.Or(problem, f.Problem)
	}
	return []any{name, s.Readiness(), s.Runtime, fmt.Sprintf("%d of %d", answering, len(s.Daemons)), loaded, now, terminal.Escape(problem)}
}

// stateOf returns the state of a node that has no status or report.
func stateOf(err error) string {
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, replica.ErrNoReport) {
		return "not started"
	}
	return "failed"
}
