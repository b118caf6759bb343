package snapshot

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Document is the JSON output of a command about the nodes of a snapshot.
type Document struct {
	Folder string            `json:"folder"`
	Nodes  map[string]any    `json:"nodes"`            // what the command prints of the node's own workdir, by name
	Failed map[string]string `json:"failed,omitempty"` // the errors of the other nodes
	// Databases and Remarks are about several nodes.
	Databases []Database `json:"databases,omitempty"`
	Remarks   []string   `json:"remarks,omitempty"`
}

// DocumentOf returns the document with the outcomes of an action on each node.
func DocumentOf[T any](s *Snapshot, outcomes []Outcome[T]) Document {
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
func Failures[T any](s *Snapshot, outcomes []Outcome[T]) (errs []error) {
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
func (s *Snapshot) Label(n *Node) string {
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

// Comparison holds the differences between the OVN databases of the nodes.
type Comparison struct {
	databases []Database
	remarks   []string
	err       error
}

// CompareDatabases compares the OVN databases of the nodes.
func (s *Snapshot) CompareDatabases(ctx context.Context) Comparison {
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
