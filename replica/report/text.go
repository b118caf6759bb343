package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/workdir/recording"
)

// PrintSummary prints the part of the report that start shows. The whole is in a file.
func (r *Report) PrintSummary(p *show.Page, file string) {
	r.printCounts(p)
	r.printBuilt(p)
	p.WarnIfAny(r.synthesised())
	for _, s := range r.Steps {
		if s.Status == Restored || s.Status == Idle {
			continue
		}
		p.Note("%s: %s", s.Status, s.Step)
		for _, d := range details(s) {
			p.Note("  - %s", d)
		}
	}
	p.WarnEach("", r.Remarks)
	r.summarizeNamespaces(p)
	p.WarnIfAny(r.Origin.Sentence())
	p.WarnIfAny(r.TraceWarning("the OVN SB database"))
	r.warnLosses(p, "")
	p.Printf("The whole report is in %s\n", file)
}

// synthesised returns a sentence about a switch that was not collected, "" for one that was.
func (r *Report) synthesised() string {
	if r.Synthesised == nil {
		return ""
	}
	return fmt.Sprintf("the switch of %s is synthesised from %s with OVN %s: \"ovs-offline report\" lists %d assumptions", r.Synthesised.Title(), r.Synthesised.Origin(), r.Synthesised.OVN, len(r.Synthesised.Assumptions))
}

// warnLosses prints a warning for the first rejected entries and for what was not collected.
func (r *Report) warnLosses(p *show.Page, prefix string) {
	const maxItems = 10
	for _, item := range r.Rejected[:min(maxItems, len(r.Rejected))] {
		p.Warn("%srejected: %s: %s: %s", prefix, location(item), item.Reason, item.Text)
	}
	if len(r.Rejected) > maxItems {
		p.Warn("%s%d more entries are rejected", prefix, r.Total(func(c *Counts) int { return c.Rejected })-maxItems)
	}
	p.WarnEach(prefix+"could not be read during collection: ", r.Lost)
}

// Print prints the whole report.
func (r *Report) Print(p *show.Page) {
	p.Printf("%s\n\n", r.Sentence())
	t := p.Table("", "recorded", "running")
	t.AppendRow([]any{"Open vSwitch", terminal.Escape(cmp.Or(r.Recorded.OVS, "unknown")), terminal.Escape(cmp.Or(r.Running.OVS, "unknown"))})
	t.AppendRow([]any{"OVN", terminal.Escape(cmp.Or(r.Recorded.OVN, "unknown")), terminal.Escape(cmp.Or(r.Running.OVN, "unknown"))})
	t.Render()
	p.Printf("\n")
	r.printMoments(p)
	r.printCounts(p)
	r.printBuilt(p)
	if r.Synthesised != nil {
		p.Lines("Assumed of the switch of "+r.Synthesised.Title()+", which is synthesised from "+r.Synthesised.Origin()+" with OVN "+r.Synthesised.OVN, r.Synthesised.Assumptions)
	}
	r.printSteps(p)
	r.printLogicalFlows(p)
	r.printNamespaces(p)
	printItems(p, "Rejected: these entries are not in the replica", r.Rejected, r.Total(func(c *Counts) int { return c.Rejected }))
	printItems(p, "Placeholders: flows refer to these entries, which were not collected", r.Placeholders, len(r.Placeholders))
	printItems(p, "Rewritten in syntax that ovs-ofctl accepts", r.Rewritten, r.Total(func(c *Counts) int { return c.Rewritten }))
	p.Lines("Could not be read during collection", r.Lost)
	p.Lines("Remarks", r.Remarks)
}

// printMoments prints when the parts of the recorded state were read, where there are several:
// what changed in between is in some of them only.
func (r *Report) printMoments(p *show.Page) {
	if len(r.Moments) < 2 {
		return
	}
	first, last := r.Moments[0].At, r.Moments[len(r.Moments)-1].At
	var list []string
	for _, moment := range r.Moments {
		list = append(list, moment.String()+" "+moment.At.Format(time.TimeOnly))
	}
	p.Printf("Recorded on %s within %s (UTC): %s\n\n", first.Format(time.DateOnly), phrase.Duration(last.Sub(first)), terminal.Escape(phrase.FirstNames(list)))
}

// printCounts prints what became of the entries of each dump.
func (r *Report) printCounts(p *show.Page) {
	t := p.Table("bridge", "dump", "collected", "restored", "rewritten", "placeholders", "rejected", "different", "from")
	for _, b := range r.Bridges {
		for _, command := range recording.Dumps() {
			dump := command.Dump
			if c := b.Counts[dump]; c != nil {
				t.AppendRow([]any{terminal.Escape(b.Name), dump, c.Collected, c.Restored, c.Rewritten, c.Placeholders, c.Rejected, c.Different, b.OpenFlow[dump].String()})
			}
		}
	}
	if t.Length() > 0 {
		t.Render()
		p.Printf("\n")
	}
}

// printSteps prints a table of the steps that had something to do.
func (r *Report) printSteps(p *show.Page) {
	t := p.Table("step", "result", "details")
	idle := 0
	for _, s := range r.Steps {
		if s.Status == Idle {
			idle++
			continue
		}
		lines := details(s)
		for i, line := range lines {
			lines[i] = terminal.Escape(line)
		}
		t.AppendRow([]any{terminal.Escape(s.Step), terminal.Escape(string(s.Status)), strings.Join(lines, "\n")})
	}
	t.Render()
	p.Printf("%d steps not needed.\n\n", idle)
}

// printLogicalFlows prints the stages of the logical flows that ovn-trace can't parse.
func (r *Report) printLogicalFlows(p *show.Page) {
	l := r.LogicalFlows
	switch {
	case l == nil || l.Problem == "" && l.Unparsed == 0:
		return
	case l.Problem != "":
		p.Printf("Logical flows: it is not known which of them ovn-trace can parse: %s\n\n", terminal.Escape(l.Problem))
		return
	case l.OnNode:
		p.Printf("Logical flows: ovn-trace can't parse %d of %d. The node's OVN is not newer, so they have no effect there either:\n", l.Unparsed, l.Total)
	default:
		p.Printf("Logical flows: ovn-trace can't parse %d of %d and leaves them out, so an answer of it may be wrong:\n", l.Unparsed, l.Total)
	}
	t := p.Table("pipeline", "table", "stage", "flows", "ovn-trace says")
	for _, s := range l.Stages {
		t.AppendRow([]any{terminal.Escape(s.Pipeline), s.Table, terminal.Escape(s.Name), s.Flows, terminal.Escape(s.Reason)})
	}
	t.Render()
	p.Printf("\n")
}

// details returns the first details of a step, and the number of the others.
func details(s Result) []string {
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
func printItems(p *show.Page, title string, items []Item, all int) {
	const maxPerReason = 20
	if len(items) == 0 {
		return
	}
	listed := ""
	if all > len(items) {
		listed = fmt.Sprintf(", the first %d are listed", len(items))
	}
	p.Printf("%s (%d%s):\n", title, all, listed)
	byReason := map[string][]Item{}
	var reasons []string
	for _, i := range items {
		if byReason[i.Reason] == nil {
			reasons = append(reasons, i.Reason)
		}
		byReason[i.Reason] = append(byReason[i.Reason], i)
	}
	for _, reason := range reasons {
		same := byReason[reason]
		p.Printf("  %s\n", terminal.Escape(reason))
		for _, i := range same[:min(maxPerReason, len(same))] {
			p.Printf("    %s: %s\n", terminal.Escape(location(i)), terminal.Escape(i.Text))
		}
		if more := len(same) - maxPerReason; more > 0 {
			p.Printf("    and %d more, in -o json\n", more)
		}
	}
	p.Printf("\n")
}

// location returns the file and line of an entry, or the dump it belongs to.
func location(i Item) string {
	switch {
	case i.File == "":
		return fmt.Sprintf("%s %s", i.Bridge, i.Dump)
	case i.Line == 0:
		return i.File
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

// Summary sums up the report in a word or two.
func (r *Report) Summary() string {
	switch {
	case r.Strict():
		return "complete"
	case r.Complete():
		return "complete, with defaults"
	}
	return "incomplete"
}

// RestoredShare returns the share of the collected entries that are restored, rounded
// down: 100 % means all.
func (r *Report) RestoredShare() string {
	collected := r.Total(func(c *Counts) int { return c.Collected })
	if collected == 0 {
		return ""
	}
	restored := r.Total(func(c *Counts) int { return c.Restored })
	return fmt.Sprintf("%g %%", float64(restored*1000/collected)/10)
}

// Warn prints a warning for what is missing in the replica of a node.
func (r *Report) Warn(p *show.Page, node string) {
	prefix := node + ": "
	for _, s := range r.Steps {
		if s.Status == Failed {
			p.WarnEach(prefix+s.Step+" failed: ", details(s))
		}
	}
	if warning := r.TraceWarning("its OVN SB database"); warning != "" {
		p.Warn("%s%s", prefix, warning)
	}
	if text := r.synthesised(); text != "" {
		p.Warn("%s%s", prefix, text)
	}
	if r.Built != nil {
		p.Warn("%s%s", prefix, built(r.Built))
	}
	r.warnLosses(p, prefix)
}
