package cmd

import (
	"context"
	"fmt"
	"strings"

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
		Long: "Compare the OVS database of the node with the one of the running replica: statistics and\n" +
			"states, which the replica has of its own, errors and port numbers. Columns that describe\n" +
			"this machine, and columns that ovs-offline changed to isolate the replica, are compared\n" +
			"only if --columns names them.\n" +
			"Each NAME is an interface, port or bridge; without any, all records are compared.",
		Example:           "  ovs-offline diff --columns link_state,error,ofport\n  ovs-offline diff eth0 -o yaml",
		ValidArgsFunction: o.completeNames,
		RunE:              o.orInPod(always, o.withWorkdir(o.run)),
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
	if err := o.emit(found.Differences, func() { o.printDiff(found.Differences) }); err != nil {
		return err
	}
	if len(found.Own) > 0 {
		fmt.Fprintf(o.Err, "Not compared, because the replica sets them itself (--columns compares them): %s\n", strings.Join(found.Own, ", "))
	}
	return nil
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
