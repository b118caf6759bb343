package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/set"
)

var errNoReport = errors.New("no report")

func newReport(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "report", Short: "Show how faithful the replica is", Args: exactArgs(),
		Long: "Show how faithful the replica is: what was restored, what is missing, and which entries were\n" +
			"rejected and why, each with its file and line. All entries are counted; -o json lists the\n" +
			"first 10000 rejected and the first 10000 rewritten ones.",
		Example: "  ovs-offline report\n  ovs-offline report -o json | jq '.rejected[]'",
		RunE:    o.workdirOrSet(o.report, o.reportSet),
	}
	o.nodeFlag(c)
	o.outputFlag(c)
	return c
}

func (o *options) report(_ context.Context, wd *workdir.Dir, _ []string) error {
	r, err := reportOf(wd)
	if err != nil {
		return err
	}
	return o.emit(r, func() { o.printReport(r) })
}

// reportOf returns the report of a replica that was started.
func reportOf(wd *workdir.Dir) (*report.Report, error) {
	r, err := replica.Report(wd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: no replica was started; start one with: ovs-offline start", errNoReport, wd.Path())
	}
	return r, err
}

// reportSet prints a line for each node of a set, or the whole report of the only one, and
// in what their OVN databases differ.
func (o *options) reportSet(ctx context.Context, s *set.Set, _ []string) error {
	outcomes := set.Each(ctx, s, func(_ context.Context, _ *set.Node, wd *workdir.Dir) (*report.Report, error) { return reportOf(wd) })
	err := o.printReports(s, outcomes, compareDatabases(ctx, s), func() {
		if len(s.Nodes()) == 1 {
			eachNode(&o.IO, values(outcomes), o.printReport)
		} else {
			o.printReportTable(outcomes)
		}
	})
	return worst(append(failures(outcomes), err)...)
}

// printSummary prints the part of a report that start shows.
func (o *IO) printSummary(wd *workdir.Dir, r *report.Report) {
	o.printCounts(r)
	o.warnIfAny(synthesised(r))
	for _, s := range r.Steps {
		if s.Status == report.Restored || s.Status == report.Idle {
			continue
		}
		fmt.Fprintf(o.Err, "%s: %s\n", s.Status, s.Step)
		for _, d := range details(s) {
			fmt.Fprintf(o.Err, "  - %s\n", terminal.EscapeLines(d))
		}
	}
	o.warnEach("", r.Remarks)
	o.warnIfAny(r.Origin.Sentence())
	o.warnIfAny(r.TraceWarning("the OVN SB database"))
	o.warnLosses("", r)
	fmt.Fprintf(o.Out, "The whole report is in %s\n", wd.ReportFile())
}

// synthesised returns a sentence about a switch that was not collected, "" for one that was.
func synthesised(r *report.Report) string {
	if r.Synthesised == nil {
		return ""
	}
	return fmt.Sprintf("the switch of %s is synthesised from the southbound database with OVN %s: \"ovs-offline report\" lists %d assumptions", r.Synthesised.Title(), r.Synthesised.OVN, len(r.Synthesised.Assumptions))
}

// warnLosses prints a warning for the first rejected entries and for what was not collected.
func (o *IO) warnLosses(prefix string, r *report.Report) {
	const maxItems = 10
	for _, item := range r.Rejected[:min(maxItems, len(r.Rejected))] {
		o.warn("%srejected: %s: %s: %s", prefix, location(item), item.Reason, item.Text)
	}
	if len(r.Rejected) > maxItems {
		o.warn("%s%d more entries are rejected", prefix, r.Total(func(c *report.Counts) int { return c.Rejected })-maxItems)
	}
	o.warnEach(prefix+"could not be read during collection: ", r.Lost)
}

// printReport prints a whole report.
func (o *IO) printReport(r *report.Report) {
	fmt.Fprintf(o.Out, "%s\n\n", r.Sentence())
	t := o.newTable("", "recorded", "running")
	t.AppendRow(table.Row{"Open vSwitch", terminal.Escape(cmp.Or(r.Recorded.OVS, "unknown")), terminal.Escape(cmp.Or(r.Running.OVS, "unknown"))})
	t.AppendRow(table.Row{"OVN", terminal.Escape(cmp.Or(r.Recorded.OVN, "unknown")), terminal.Escape(cmp.Or(r.Running.OVN, "unknown"))})
	t.Render()
	fmt.Fprintln(o.Out)
	o.printCounts(r)
	if r.Synthesised != nil {
		o.printLines("Assumed of the switch of "+r.Synthesised.Title()+", which is synthesised from the southbound database with OVN "+r.Synthesised.OVN, r.Synthesised.Assumptions)
	}
	o.printSteps(r)
	o.printLogicalFlows(r)
	o.printItems("Rejected: these entries are not in the replica", r.Rejected, r.Total(func(c *report.Counts) int { return c.Rejected }))
	o.printItems("Placeholders: flows refer to these entries, which were not collected", r.Placeholders, len(r.Placeholders))
	o.printItems("Rewritten in syntax that ovs-ofctl accepts", r.Rewritten, r.Total(func(c *report.Counts) int { return c.Rewritten }))
	o.printLines("Could not be read during collection", r.Lost)
	o.printLines("Remarks", r.Remarks)
}

// printCounts prints what became of the entries of each dump.
func (o *IO) printCounts(r *report.Report) {
	t := o.newTable("bridge", "dump", "collected", "restored", "rewritten", "placeholders", "rejected", "different", "from")
	for _, b := range r.Bridges {
		for _, command := range recording.Dumps() {
			dump := command.Dump
			if c := b.Counts[dump]; c != nil {
				t.AppendRow(table.Row{terminal.Escape(b.Name), dump, c.Collected, c.Restored, c.Rewritten, c.Placeholders, c.Rejected, c.Different, b.OpenFlow[dump].String()})
			}
		}
	}
	if t.Length() > 0 {
		t.Render()
		fmt.Fprintln(o.Out)
	}
}

// printSteps prints a table of the steps that had something to do.
func (o *IO) printSteps(r *report.Report) {
	t := o.newTable("step", "result", "details")
	idle := 0
	for _, s := range r.Steps {
		if s.Status == report.Idle {
			idle++
			continue
		}
		lines := details(s)
		for i, line := range lines {
			lines[i] = terminal.Escape(line)
		}
		t.AppendRow(table.Row{terminal.Escape(s.Step), terminal.Escape(string(s.Status)), strings.Join(lines, "\n")})
	}
	t.Render()
	fmt.Fprintf(o.Out, "%d steps not needed.\n\n", idle)
}

// printLogicalFlows prints the stages of the logical flows that ovn-trace can't parse.
func (o *IO) printLogicalFlows(r *report.Report) {
	l := r.LogicalFlows
	switch {
	case l == nil || l.Problem == "" && l.Unparsed == 0:
		return
	case l.Problem != "":
		fmt.Fprintf(o.Out, "Logical flows: it is not known which of them ovn-trace can parse: %s\n\n", terminal.Escape(l.Problem))
		return
	case l.OnNode:
		fmt.Fprintf(o.Out, "Logical flows: ovn-trace can't parse %d of %d. The node's OVN is not newer, so they have no effect there either:\n", l.Unparsed, l.Total)
	default:
		fmt.Fprintf(o.Out, "Logical flows: ovn-trace can't parse %d of %d and leaves them out, so an answer of it may be wrong:\n", l.Unparsed, l.Total)
	}
	t := o.newTable("pipeline", "table", "stage", "flows", "ovn-trace says")
	for _, s := range l.Stages {
		t.AppendRow(table.Row{terminal.Escape(s.Pipeline), s.Table, terminal.Escape(s.Name), s.Flows, terminal.Escape(s.Reason)})
	}
	t.Render()
	fmt.Fprintln(o.Out)
}

// details returns the first details of a step, and the number of the others.
func details(s report.Result) []string {
	const maxDetails = 100
	n := min(maxDetails, len(s.Details))
	list := slices.Clone(s.Details[:n])
	if more := len(s.Details) - n + s.More; more > 0 {
		list = append(list, fmt.Sprintf("and %d more; ovs-offline report -o json has the first %d", more, len(s.Details)))
	}
	return list
}

// printItems prints entries by reason: each reason once, and below it the file and
// line of its first entries. all is the number of entries, of which items has only the
// first.
func (o *IO) printItems(title string, items []report.Item, all int) {
	const maxPerReason = 20
	if len(items) == 0 {
		return
	}
	listed := ""
	if all > len(items) {
		listed = fmt.Sprintf(", the first %d are listed", len(items))
	}
	fmt.Fprintf(o.Out, "%s (%d%s):\n", title, all, listed)
	byReason := map[string][]report.Item{}
	var reasons []string
	for _, i := range items {
		if byReason[i.Reason] == nil {
			reasons = append(reasons, i.Reason)
		}
		byReason[i.Reason] = append(byReason[i.Reason], i)
	}
	for _, reason := range reasons {
		same := byReason[reason]
		fmt.Fprintf(o.Out, "  %s\n", terminal.Escape(reason))
		for _, i := range same[:min(maxPerReason, len(same))] {
			fmt.Fprintf(o.Out, "    %s: %s\n", terminal.Escape(location(i)), terminal.Escape(i.Text))
		}
		if more := len(same) - maxPerReason; more > 0 {
			fmt.Fprintf(o.Out, "    and %d more, in -o json\n", more)
		}
	}
	fmt.Fprintln(o.Out)
}

// location returns the file and line of an entry, or the dump it belongs to.
func location(i report.Item) string {
	switch {
	case i.File == "":
		return fmt.Sprintf("%s %s", i.Bridge, i.Dump)
	case i.Line == 0:
		return i.File
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

func (o *IO) printLines(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(o.Out, "%s:\n", terminal.Escape(title))
	for _, l := range lines {
		fmt.Fprintf(o.Out, "  - %s\n", terminal.Escape(l))
	}
	fmt.Fprintln(o.Out)
}
