package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/answer/history"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

type historyOptions struct {
	*options
	query            history.Query
	since, until, at string
	limit            int
	detail           bool
	save             string
	text             history.TextOptions
}

func newHistory(shared *options) *cobra.Command {
	o := &historyOptions{options: shared}
	command := &cobra.Command{
		Use: "history [conf|nb|sb]", Short: "Show who changed what in the databases, and when", Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		Long: "Show the transactions that the collected database files hold, the oldest first, and what\n" +
			"clients of libovsdb (OVN-Kubernetes) asked for where their logs were collected. A database\n" +
			"that was compacted holds one state and the transactions since then. Without an argument,\n" +
			"the transactions of all collected databases are shown in order of time. No replica needs\n" +
			"to run, and nothing that was collected is changed. Of a folder of several nodes, each OVS\n" +
			"database is shown, and the newest copy of each OVN database.\n\n" +
			"Each row that a transaction added (+), changed (~) or deleted (-) has a line; with --detail\n" +
			"also each column of added and deleted rows. Times are in UTC; TIME is written as in the\n" +
			"output, or as 2026-11-22 or 2026-11-22T14:57:26Z; 14:57 is of the last day of the data.",
		Example: "  ovs-offline history nb --record web-1\n" +
			"  ovs-offline history --since '2026-11-22 14:00' --until '2026-11-22 14:05'\n" +
			"  ovs-offline history sb --table Chassis --detail\n" +
			"  ovs-offline history nb --at '2026-11-22 14:00' --table Logical_Switch_Port\n" +
			"  ovs-offline history --at '2026-11-22 14:00' --save then && ovs-offline -w wd-then collect then",
		ValidArgs: []string{"conf", "nb", "sb"},
		RunE:      o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&o.query.Table, "table", "", "only changes of this `TABLE`, for example Logical_Switch_Port")
	flags.StringVar(&o.query.Record, "record", "", "only changes of this `ROW`: its name, its UUID or the beginning of it, or an address in a value")
	flags.StringVar(&o.query.Column, "column", "", "only changes of this `COLUMN`")
	flags.StringVar(&o.since, "since", "", "only what happened at this `TIME` or later")
	flags.StringVar(&o.until, "until", "", "only what happened at this `TIME` or before")
	flags.IntVarP(&o.limit, "limit", "n", 0, "only the last `N` transactions; 0 for all")
	flags.StringVar(&o.at, "at", "", "show the state at this `TIME`: the number of rows of each table, or with --table or --record the rows")
	flags.StringVar(&o.save, "save", "", "write the databases as they were at the time of --at to this `FOLDER`, for collect")
	detailFlag(command, &o.detail, "print values whole, and each column of added and deleted rows")
	command.MarkFlagsMutuallyExclusive("at", "since")
	command.MarkFlagsMutuallyExclusive("at", "until")
	command.MarkFlagsMutuallyExclusive("at", "limit")
	return command
}

// run shows the history of the databases that have any: of each OVS database, and of each OVN
// database once.
func (o *historyOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	if o.save != "" && len(selected.Nodes()) > 1 {
		return fault.Usagef("--save writes the databases of one node: choose it with --node")
	}
	if err := o.parse(); err != nil {
		return err
	}
	sources, remarks, err := history.Sources(ctx, selected.Snapshot, kindsOf(args)...)
	if err != nil {
		return err
	}
	o.page().WarnEach("", remarks)
	sources = slices.DeleteFunc(sources, func(source history.Source) bool {
		return source.File == "" && (len(source.Logs) == 0 || len(args) == 0)
	})
	if len(sources) == 0 {
		what := "no database"
		if len(args) > 0 {
			what = "no " + kindsOf(args)[0].Title() + " database"
		}
		return fmt.Errorf("%s holds %s: collect one, for example with: %s", o.workdir, what, o.call("", "collect", "PATH"))
	}
	if err := history.FindDay(ctx, sources, time.Time{}, &o.query.Since, &o.query.Until); err != nil {
		return err
	}
	if err := o.query.FindTable(ctx, sources); err != nil {
		return err
	}
	if o.query.Record != "" {
		if err := o.query.FindRecord(ctx, selected.Snapshot); err != nil {
			return err
		}
	}
	o.text = history.OptionsFor(o.query, sources, o.detail)
	switch {
	case o.save != "":
		states, remarks, err := history.SaveStates(ctx, sources, o.query, o.save)
		return o.printStates(states, remarks, err, (*history.State).PrintTitle)
	case o.at != "":
		states, remarks, err := history.States(ctx, sources, o.query)
		return o.printStates(states, remarks, err, (*history.State).Print)
	}
	return o.printEvents(ctx, sources)
}

// parse reads the times of the flags.
func (o *historyOptions) parse() (err error) {
	if o.save != "" && o.at == "" {
		return fault.Usagef("--save writes the databases of a moment: give it with --at")
	}
	if err := checkLimit(o.limit); err != nil {
		return err
	}
	o.query.Since, o.query.Until, err = history.ParseRange(o.since, cmp.Or(o.until, o.at)) // only one of the last two is given
	return err
}

// kindsOf returns the kind of database that the argument names, or all.
func kindsOf(args []string) []workdir.Kind {
	if len(args) == 0 {
		return workdir.Kinds()
	}
	return []workdir.Kind{map[string]workdir.Kind{"conf": workdir.OVS, "nb": workdir.NB, "sb": workdir.SB}[args[0]]}
}

// printEvents prints the transactions as they are read, or the last of them.
func (o *historyOptions) printEvents(ctx context.Context, sources []history.Source) error {
	list := o.list()
	results, err := history.ReadLast(ctx, sources, o.query, o.limit, func(event *history.Event) error {
		return list.Add(event, func() string { return event.Text(o.text) })
	})
	if err != nil {
		return err
	}
	if err := list.End(nil); err != nil {
		return err
	}
	return o.printResults(results, list.Count)
}

// printResults prints what the files do not hold.
func (o *historyOptions) printResults(results []history.Result, count int) error {
	lost := false
	for _, result := range results {
		if note := result.Note(); note != "" && o.query.Until.IsZero() {
			fmt.Fprintln(o.Err, note)
		}
		o.page().WarnEach(result.Database+": ", result.Remarks)
		lost = lost || result.Lost
	}
	if count == 0 && o.format == formatTable {
		fmt.Fprintln(o.Out, "No transaction matches.")
	}
	return incompleteIf(lost)
}

// printStates prints the databases at the time of --at.
func (o *historyOptions) printStates(states []*history.State, remarks []string, err error, print func(*history.State, *show.Page)) error {
	o.page().WarnEach("", remarks)
	if err != nil {
		return err
	}
	err = o.emit(states, func(page *show.Page) {
		for _, state := range states {
			print(state, page)
		}
	})
	lost := false
	for _, state := range states {
		o.page().WarnEach(history.DatabaseName(state.Node, state.Database)+": ", state.Remarks)
		lost = lost || state.Lost
	}
	return worst(err, incompleteIf(lost))
}
