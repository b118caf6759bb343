package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/set"
)

// nodeFlag adds --node to a command that takes a set.
func (o *options) nodeFlag(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.nodes, "node", nil, "only these nodes of a folder of several (can be repeated)")
	_ = c.RegisterFlagCompletionFunc("node", o.completeNodes)
}

// completeNodes returns the nodes of the set in the workdir.
func (o *options) completeNodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	s, err := set.Open(o.workdir, version, nil)
	if err != nil || s == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range s.Nodes() {
		if plainWord.MatchString(n.Name) {
			names = append(names, n.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// setFunc is the function of a command that works on a set.
type setFunc func(ctx context.Context, s *set.Set, args []string) error

// oneOrSet returns a cobra function that calls several if the workdir is a folder of the
// workdirs of nodes, and else one.
func (o *options) oneOrSet(one func(*cobra.Command, []string) error, several setFunc) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		s, err := set.Open(o.workdir, version, o.nodes)
		if errors.Is(err, set.ErrNoNode) {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if err != nil {
			return err
		}
		if s != nil {
			return several(c.Context(), s, args)
		}
		if len(o.nodes) > 0 {
			return fmt.Errorf("%w: --node selects from a folder of several nodes, and %s is none", errUsage, o.workdir)
		}
		return one(c, args)
	}
}

// setDocument is the JSON output of a command about the nodes of a set.
type setDocument struct {
	Folder string            `json:"folder"`
	Nodes  map[string]any    `json:"nodes"`            // what the command prints of the node's own workdir, by name
	Failed map[string]string `json:"failed,omitempty"` // the errors of the other nodes
	// Databases and Remarks are about several nodes.
	Databases []set.Database `json:"databases,omitempty"`
	Remarks   []string       `json:"remarks,omitempty"`
}

// documentOf returns the document with the outcomes of an action on each node.
func documentOf[T any](s *set.Set, outcomes []set.Outcome[T]) setDocument {
	d := setDocument{Folder: s.Folder(), Nodes: map[string]any{}, Remarks: s.Remarks()}
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

// failures returns the errors of the nodes, with their names.
func failures[T any](outcomes []set.Outcome[T]) (errs []error) {
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", o.Node.Name, o.Err))
		}
	}
	return errs
}

// values returns the values of the nodes that did not fail, with the nodes.
func values[T any](outcomes []set.Outcome[T]) (found []set.Outcome[T]) {
	for _, o := range outcomes {
		if o.Err == nil {
			found = append(found, o)
		}
	}
	return found
}

// compared is in what the OVN databases of the nodes of a set differ.
type compared struct {
	databases []set.Database
	remarks   []string
	err       error
}

func compareDatabases(ctx context.Context, s *set.Set) compared {
	databases, problems, err := s.Databases(ctx)
	return compared{databases, append(problems, set.Sentences(databases)...), err}
}

// printCopies prints a line for each database of which nodes have copies.
func (o *IO) printCopies(databases []set.Database) {
	if len(databases) == 0 {
		return
	}
	fmt.Fprintln(o.Out)
	t := o.newTable("database", "nodes", "last change", "nb_cfg", "id")
	for _, d := range databases {
		for _, c := range d.Copies {
			t.AppendRow([]any{d.Kind.Title(), terminal.Escape(strings.Join(c.Nodes, ", ")), localTime(c.Changed), c.NBCfg, terminal.Escape(d.ID)})
		}
	}
	t.Render()
}

// printReports prints the reports of the nodes of a set and in what their OVN databases
// differ, as a document or with print.
func (o *options) printReports(s *set.Set, outcomes []set.Outcome[*report.Report], c compared, print func()) error {
	if c.err != nil {
		return c.err
	}
	d := documentOf(s, outcomes)
	d.Databases, d.Remarks = c.databases, append(d.Remarks, c.remarks...)
	return o.emit(d, func() {
		print()
		o.printCopies(d.Databases)
		o.warnEach("", d.Remarks)
	})
}

// printReportTable prints a line for each report.
func (o *IO) printReportTable(outcomes []set.Outcome[*report.Report]) {
	t := o.newTable("node", "result", "restored", "rejected", "different", "placeholders", "lost", "recorded", "running")
	for _, outcome := range outcomes {
		name, r := terminal.Escape(outcome.Node.Name), outcome.Value
		if outcome.Err != nil {
			t.AppendRow([]any{name, stateOf(outcome.Err), "", "", "", "", "", "", ""})
			continue
		}
		t.AppendRow([]any{name, result(r), restoredShare(r),
			r.Total(func(c *report.Counts) int { return c.Rejected }), r.Total(func(c *report.Counts) int { return c.Different }),
			r.Total(func(c *report.Counts) int { return c.Placeholders }), len(r.Lost), versionsText(r.Recorded), versionsText(r.Running)})
	}
	t.Render()
}

// result sums up a report in a word.
func result(r *report.Report) string {
	switch {
	case r.Strict():
		return "complete"
	case r.Complete():
		return "complete, with defaults"
	}
	return "incomplete"
}

// restoredShare returns the share of the collected entries that are restored, rounded
// down: 100 % means all.
func restoredShare(r *report.Report) string {
	collected := r.Total(func(c *report.Counts) int { return c.Collected })
	if collected == 0 {
		return ""
	}
	restored := r.Total(func(c *report.Counts) int { return c.Restored })
	return fmt.Sprintf("%g %%", float64(restored*1000/collected)/10)
}

// eachNode prints something about each node below a line with its name. For one node, it
// prints no such line.
func eachNode[T any](o *IO, found []set.Outcome[T], print func(v T)) {
	for _, f := range found {
		if len(found) > 1 {
			o.headline("Node %s", terminal.Escape(f.Node.Name))
		}
		print(f.Value)
	}
}

// workdirOrSet returns a cobra function that calls run with the workdir of a node, or
// several with a set.
func (o *options) workdirOrSet(run runFunc, several setFunc) func(*cobra.Command, []string) error {
	return o.oneOrSet(func(c *cobra.Command, args []string) error {
		wd, err := workdir.Find(o.workdir)
		if err != nil {
			return err
		}
		return run(c.Context(), wd, args)
	}, several)
}
