package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/compare"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/terminal"
)

type compareOptions struct {
	*options
	detail bool
	limits archive.Limits
}

func newCompare(shared *options) *cobra.Command {
	o := &compareOptions{options: shared}
	c := &cobra.Command{
		Use: "compare OLD NEW", Short: "Compare two captures of nodes, in names", Args: exactArgs("OLD", "NEW"),
		Long: "Compare two captures: working directories, folders of several, files that save wrote, or what\n" +
			"collect takes, such as sos reports. Nothing is reported that only has another number: a UUID, a\n" +
			"port number, a tunnel key, a conntrack zone, the id of a group, a meter or a conjunction.\n\n" +
			"Compared are the objects of OVN and of Open vSwitch, where ports are bound, link states, errors,\n" +
			"counters of faults, versions, and flows. A flow that differs because of another change is counted\n" +
			"with that change; only the others are listed.\n\n" +
			"Exit code 0: compared, whether or not something differs (\"same\" in -o json).\n" +
			"Exit code 3: a part could not be compared.",
		Example: "  ovs-offline compare before.ovs-offline sosreport-compute1.tar.xz\n" +
			"  ovs-offline compare case1 case2 -o html >changes.html",
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], args[1]) },
	}
	c.Flags().BoolVar(&o.detail, "detail", false, "print every change, and what follows from it")
	choiceFlag(c, &o.format, "output", "o", "table, json, yaml or html", formatTable, "json", "yaml", "html")
	limitFlags(c, &o.limits)
	return c
}

func (o *compareOptions) run(ctx context.Context, older, newer string) error {
	a, err := o.open(ctx, older)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := o.open(ctx, newer)
	if err != nil {
		return err
	}
	defer b.Close()
	found, err := compare.Compare(ctx, a, b)
	if err != nil {
		return err
	}
	if o.format == "html" {
		err = found.HTML(o.Out)
	} else {
		err = o.emit(found, func() { o.printComparison(found) })
	}
	return errors.Join(err, incompleteIf(len(found.Missing) > 0))
}

func (o *compareOptions) open(ctx context.Context, path string) (*compare.Side, error) {
	p := o.progress()
	defer p.end()
	side, err := compare.Open(ctx, path, compare.OpenOptions{Version: version, Limits: o.limits, Progress: p.bytes})
	if err != nil {
		return nil, explain(err, path)
	}
	return side, nil
}

// printComparison prints how many objects of each kind differ, and then a line for each of
// them.
func (o *compareOptions) printComparison(found *compare.Comparison) {
	const most = 20 // of one kind
	o.warnEach("", found.Remarks)
	o.warnEach("not compared: ", found.Missing)
	if found.Same {
		fmt.Fprintln(o.Out, "No change.")
		return
	}
	summary := o.newTable("kind", "added", "gone", "changed", "flows")
	for _, k := range found.Kinds() {
		summary.AppendRow(table.Row{terminal.Escape(k.Kind), k.Added, k.Gone, k.Changed, k.Flows})
	}
	summary.Render()
	fmt.Fprintln(o.Out)
	list := o.newTable("change", "what", "values")
	left := 0
	at := map[string]int{}
	for _, f := range found.Findings {
		if at[f.Kind]++; at[f.Kind] > most && !o.detail {
			left++
			continue
		}
		list.AppendRow(o.row(f))
	}
	list.Render()
	if left > 0 {
		fmt.Fprintf(o.Out, "and %d more; --detail prints all\n", left)
	}
}

// row returns the row of a change. Without --detail, values are shortened.
func (o *compareOptions) row(f compare.Finding) table.Row {
	const most = 200 // bytes
	name, values := f.Subject(), f.Details()
	if f.Node != "" {
		name = f.Node + ": " + name
	}
	if !o.detail {
		return table.Row{f.Change, terminal.Escape(openflow.Shorten(name, most)), terminal.Escape(openflow.Shorten(values, most))}
	}
	values = terminal.Escape(values)
	if f.Flows != nil {
		values = joinLines(values, "flows: "+f.Flows.String())
	}
	for _, text := range f.Follows {
		values = joinLines(values, terminal.Escape(text))
	}
	return table.Row{f.Change, terminal.Escape(name), values}
}

func joinLines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
