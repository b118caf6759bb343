package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/answer/history"
	"ovs-offline/answer/timeline"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/fault"
	"ovs-offline/replica/set"
)

type timelineOptions struct {
	*options
	query                     timeline.Query
	since, until, level, zone string
	limit                     int
}

func newTimeline(shared *options) *cobra.Command {
	o := &timelineOptions{options: shared}
	command := &cobra.Command{
		Use: "timeline", Short: "Show what daemons logged and what changed in the databases, in order", Args: cobra.NoArgs,
		Long: "Merge the collected logs of all nodes and programs with the transactions of the\n" +
			"databases, in order of time. Behind a line stands what users call the pods, ports,\n" +
			"routers and nodes that it names. Shown are warnings and worse, lines that say that something\n" +
			"changed (ports claimed, BFD, RAFT, connections, recomputes, restarts), and all\n" +
			"transactions; --all shows every line, and --level chooses by severity alone.\n" +
			"Lines that repeat within five minutes are one entry, with their number, which counts\n" +
			"the lines that a daemon says it dropped. No replica needs to run.\n\n" +
			"Times are in UTC; TIME is written as in the output, or as 2026-11-22 or\n" +
			"2026-11-22T14:57:26Z. A warning names each node whose clock can't be right, and\n" +
			"each log without a time zone.\n\n" +
			"Exit code 3: a log or a record of a database can't be read.",
		Example: "  ovs-offline timeline --since '2026-11-22 14:00' --until '2026-11-22 14:05'\n" +
			"  ovs-offline -w nodes timeline --grep web-1\n" +
			"  ovs-offline timeline --program ovn-controller --level warn -n 50\n" +
			"  ovs-offline timeline --table Port_Binding --record web-1 -o json",
		RunE: o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&o.since, "since", "", "only what happened at this `TIME` or later")
	flags.StringVar(&o.until, "until", "", "only what happened at this `TIME` or before")
	flags.StringVar(&o.query.Table, "table", "", "only transactions that changed this `TABLE`")
	flags.StringVar(&o.query.Record, "record", "", "only what names this `ROW`: its name or UUID")
	flags.StringVar(&o.query.Grep, "grep", "", "only entries with this `TEXT`, in any case")
	flags.StringSliceVar(&o.query.Programs, "program", nil, "only this `PROGRAM` (can be repeated)")
	flags.StringVar(&o.level, "level", "", "only this `LEVEL` or worse: "+strings.Join(daemonlog.Levels(), ", "))
	flags.BoolVar(&o.query.All, "all", false, "show every line")
	flags.BoolVar(&o.query.LogsOnly, "logs", false, "show no transactions")
	flags.StringVar(&o.zone, "zone", "UTC", "time `ZONE` of lines without one: +01:00, Europe/Rome")
	flags.IntVarP(&o.limit, "limit", "n", 0, "only the last `N` entries; 0 for all")
	command.MarkFlagsMutuallyExclusive("all", "level")
	command.MarkFlagsMutuallyExclusive("logs", "table")
	_ = command.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(daemonlog.Levels(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *timelineOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if err := o.parse(); err != nil {
		return err
	}
	found, err := timeline.Open(ctx, selected.Snapshot, o.query)
	if err != nil {
		return err
	}
	defer found.Close()
	list, text := o.list(), found.Text(o.page())
	result, err := found.Read(ctx, o.limit, func(entry *timeline.Entry) error {
		return list.Add(entry, func() string { return text.Of(entry) })
	})
	if err != nil {
		return err
	}
	if err := list.End(nil); err != nil {
		return err
	}
	o.page().WarnEach("", result.Remarks)
	if list.Count == 0 && o.format == formatTable {
		fmt.Fprintln(o.Out, "No entry matches.")
	}
	return incompleteIf(result.Lost)
}

// parse reads the flags that are texts.
func (o *timelineOptions) parse() (err error) {
	if err := checkLimit(o.limit); err != nil {
		return err
	}
	if o.query.Since, o.query.Until, err = history.ParseRange(o.since, o.until); err != nil {
		return err
	}
	if o.query.Location, err = parseZone(o.zone); err != nil {
		return err
	}
	var ok bool
	if o.query.Level, ok = daemonlog.ParseLevel(o.level); !ok && o.level != "" {
		return fault.Usagef("--level is one of %s, not %q", strings.Join(daemonlog.Levels(), ", "), o.level)
	}
	return nil
}

// parseZone returns the time zone of a name or an offset.
func parseZone(name string) (*time.Location, error) {
	if at, err := time.Parse("-07:00", name); err == nil {
		_, offset := at.Zone()
		return time.FixedZone(name, offset), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault.Usagef("--zone is a name as Europe/Rome or an offset as +01:00, not %q", name)
	}
	return zone, nil
}
