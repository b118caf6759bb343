package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
)

func newReport(o *options) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "report", Short: "Say how faithful the replica is", Args: exactly(),
		Long: "Say how faithful the replica is: what was restored, what is missing, and what was set\n" +
			"aside and why, each entry with its file and line. -o json has every entry that the report\n" +
			"names: of more than 10000 that were set aside or mended, the first ones; all are counted.",
		Example: "  ovs-offline report\n  ovs-offline report -o json | jq '.rejected[]'",
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			r, err := replica.Report(wd)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("no report in %s, since no replica was started: ovs-offline start", wd.Path())
			}
			if err != nil {
				return err
			}
			return o.emit(format, r, func() { o.printWhole(r) })
		},
	}
	outputFlag(c, &format)
	return c
}

// printWhole writes all that a report says.
func (o *options) printWhole(r *report.Report) {
	fmt.Fprintf(o.Out, "%s\n\n", verdict(r))
	t := newTable(o.Out, "", "recorded", "running")
	t.AppendRow(table.Row{"Open vSwitch", terminal.Escape(cmp.Or(r.Recorded.OVS, "unknown")), terminal.Escape(cmp.Or(r.Running.OVS, "unknown"))})
	t.AppendRow(table.Row{"OVN", terminal.Escape(cmp.Or(r.Recorded.OVN, "unknown")), terminal.Escape(cmp.Or(r.Running.OVN, "unknown"))})
	t.Render()
	fmt.Fprintln(o.Out)
	printCounts(o.Out, r)
	o.printAllSteps(r)
	o.printItems("Set aside: these are not in the replica", r.Rejected, total(r, func(c *report.Counts) int { return c.Rejected }))
	o.printItems("Stand-ins: what flows name and nobody collected", r.Placeholders, len(r.Placeholders))
	o.printItems("Rewritten: said in words that ovs-ofctl reads", r.Rewritten, total(r, func(c *report.Counts) int { return c.Rewritten }))
	o.printLines("Could not be read when it was collected", r.Lost)
	o.printLines("Remarks", r.Remarks)
}

// verdict is the report in a sentence.
func verdict(r *report.Report) string {
	switch {
	case r.Strict():
		return "All that was collected is restored, and read back the same."
	case r.Complete():
		return "All that was collected is restored; some of what the node had was not collected, and stand-ins or defaults take its place."
	}
	return "Something that was collected is not in the replica: it is named below."
}

func (o *options) printAllSteps(r *report.Report) {
	t := newTable(o.Out, "step", "result", "what")
	idle := 0
	for _, s := range r.Steps {
		if s.Status == report.Idle {
			idle++
			continue
		}
		said := details(s)
		for i, d := range said {
			said[i] = terminal.Escape(d)
		}
		t.AppendRow(table.Row{terminal.Escape(s.Step), terminal.Escape(string(s.Status)), strings.Join(said, "\n")})
	}
	t.Render()
	fmt.Fprintf(o.Out, "%d steps had nothing to do.\n\n", idle)
}

// total is a count of all dumps: a report doesn't name all that it counts.
func total(r *report.Report, of func(*report.Counts) int) (n int) {
	for _, b := range r.Bridges {
		for _, c := range b.Counts {
			n += of(c)
		}
	}
	return n
}

// printItems writes entries by reason, those of all that the report names: each
// reason once, and below it each entry's file and line.
func (o *options) printItems(title string, items []report.Item, all int) {
	if len(items) == 0 {
		return
	}
	count := fmt.Sprint(all)
	if all > len(items) {
		count = fmt.Sprintf("%d, the first %d are named", all, len(items))
	}
	fmt.Fprintf(o.Out, "%s (%s):\n", title, count)
	byReason := map[string][]report.Item{}
	var reasons []string
	for _, i := range items {
		if byReason[i.Reason] == nil {
			reasons = append(reasons, i.Reason)
		}
		byReason[i.Reason] = append(byReason[i.Reason], i)
	}
	const most = 20 // of a reason; -o json has all
	for _, reason := range reasons {
		same := byReason[reason]
		fmt.Fprintf(o.Out, "  %s\n", terminal.Escape(reason))
		for n, i := range same {
			if n == most {
				fmt.Fprintf(o.Out, "    and %d more, in -o json\n", len(same)-most)
				break
			}
			fmt.Fprintf(o.Out, "    %s: %s\n", terminal.Escape(place(i)), terminal.Escape(i.Text))
		}
	}
	fmt.Fprintln(o.Out)
}

// place is where an entry stands.
func place(i report.Item) string {
	if i.File == "" {
		return fmt.Sprintf("%s %s", i.Bridge, i.Dump)
	}
	if i.Line == 0 {
		return i.File
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

func (o *options) printLines(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(o.Out, "%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(o.Out, "  - %s\n", terminal.Escape(l))
	}
	fmt.Fprintln(o.Out)
}
