package cmd

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newDiff(o *options) *cobra.Command {
	var format string
	var columns []string
	c := &cobra.Command{
		Use: "diff [NAME]...", Short: "Show what the OVS database of the node said otherwise",
		Long: "Show what the OVS database of the node said and the one of the running replica does not:\n" +
			"statistics and link states, which a replica has of its own, errors, port numbers, and what\n" +
			"was changed to make it safe. NAMEs are of interfaces, ports, bridges; all without any.",
		Example:           "  ovs-offline diff --columns link_state,error,ofport\n  ovs-offline diff eth0 -o yaml",
		ValidArgsFunction: o.completeNames,
		RunE: func(c *cobra.Command, names []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			found, err := replica.Diff(c.Context(), wd, replica.Selection{Records: names, Columns: columns})
			if err != nil {
				return err
			}
			return o.emit(format, found, func() { o.printDiff(found) })
		},
	}
	outputFlag(c, &format)
	c.Flags().StringSliceVar(&columns, "columns", nil, "only these columns")
	_ = c.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions(
		[]string{"admin_state", "bfd_status", "error", "link_state", "mac_in_use", "ofport", "statistics", "status"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *options) printDiff(found []replica.Difference) {
	if len(found) == 0 {
		fmt.Fprintln(o.Out, "They say the same.")
		return
	}
	const most = 60 // characters of a value; -o json has all
	short := func(s string) string { return runewidth.Truncate(terminal.Escape(s), most, "...") }
	t := newTable(o.Out, "table", "record", "column", "recorded", "running")
	for _, d := range found {
		t.AppendRow(table.Row{d.Table, short(d.Record), d.Column, short(d.Recorded), short(d.Running)})
	}
	t.Render()
}
