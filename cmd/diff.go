package cmd

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

type diffOptions struct {
	*options
	columns []string
}

func newDiff(shared *options) *cobra.Command {
	o := &diffOptions{options: shared}
	c := &cobra.Command{
		Use: "diff [NAME]...", Short: "Compare the node's OVS database with the replica's",
		Long: "Compare the OVS database of the node with the one of the running replica. They differ in\n" +
			"statistics and link states, which the replica sets itself, in errors and port numbers,\n" +
			"and in what was changed to isolate the replica. Each NAME is an interface, port or bridge;\n" +
			"without any, all records are compared.",
		Example:           "  ovs-offline diff --columns link_state,error,ofport\n  ovs-offline diff eth0 -o yaml",
		ValidArgsFunction: o.completeNames,
		RunE:              o.withWorkdir(o.run),
	}
	o.outputFlag(c)
	c.Flags().StringSliceVar(&o.columns, "columns", nil, "compare only these columns")
	_ = c.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions(
		[]string{"admin_state", "bfd_status", "error", "link_state", "mac_in_use", "ofport", "statistics", "status"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *diffOptions) run(ctx context.Context, wd *workdir.Dir, names []string) error {
	found, err := replica.Diff(ctx, wd, replica.Selection{Records: names, Columns: o.columns})
	if err != nil {
		return err
	}
	return o.emit(found, func() { o.printDiff(found) })
}

func (o *diffOptions) printDiff(found []replica.Difference) {
	const maxWidth = 60 // of a value; -o json has all of it
	if len(found) == 0 {
		fmt.Fprintln(o.Out, "No differences.")
		return
	}
	short := func(s string) string { return runewidth.Truncate(terminal.Escape(s), maxWidth, "...") }
	t := o.newTable("table", "record", "column", "recorded", "running")
	for _, d := range found {
		t.AppendRow(table.Row{d.Table, short(d.Record), d.Column, short(d.Recorded), short(d.Running)})
	}
	t.Render()
}
