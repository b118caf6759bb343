package bisect

import (
	"fmt"
	"strings"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the document for people: since when the verdict is so, and by which transaction, comes first.
func (d *Document) Print(page *show.Page) {
	page.Text("%s\n", terminal.Escape(d.Headline()))
	for i, c := range d.Changes {
		if i == 0 {
			printLines(page, "change", strings.Split(strings.TrimSpace(c.Event.Text(history.TextOptions{})), "\n"))
			printLines(page, "before", []string{terminal.Escape(c.Before.line())})
			printLines(page, "since", []string{terminal.Escape(c.After.line())})
			continue
		}
		printLines(page, "earlier", strings.Split(strings.TrimSpace(c.Event.Text(history.TextOptions{})), "\n"))
		printLines(page, "", []string{terminal.Escape(c.Before.Verdict + " before, then " + c.After.line())})
	}
	if len(d.Changes) > 0 {
		at := d.Changes[0].Event.Time
		next := rule.Ask("history", "nb", "--since", timeText(at), "--until", timeText(at), "--detail")
		printLines(page, "next", []string{next.Text(page.Call)})
	}
	printLines(page, "computed", []string{d.computed()})
	printLines(page, "assumed", []string{"the nodes had the ports that they have in what was collected"})
}

// Headline says since when the verdict is so.
func (d *Document) Headline() string {
	head := d.Verdict + "  " + d.Question + ": "
	switch {
	case len(d.Changes) > 0:
		event := d.Changes[0].Event
		return fmt.Sprintf("%ssince %s, by transaction %d of %s, before that %s", head, timeText(event.Time), event.Transaction,
			event.Database, d.Changes[0].Before.Verdict)
	case d.States == 1:
		return fmt.Sprintf("%ssince when is not in the log: the OVN NB database holds the state of %s only (compacted)", head, timeText(d.Begins))
	}
	return fmt.Sprintf("%ssince before %s, where the log of the OVN NB database begins", head, timeText(d.Begins))
}

// computed says how much was looked at.
func (d *Document) computed() string {
	text := fmt.Sprintf("the verdicts of %d of %s since %s", d.Computed, phrase.Count(d.States, "state"), timeText(d.Begins))
	if d.Logical > 0 {
		text += fmt.Sprintf("; %d more are like these according to ovn-trace", d.Logical)
	}
	if rest := d.States - d.Computed - d.Logical; rest > 0 {
		text += fmt.Sprintf("; %d were not looked at, and another change and its end may be among them", rest)
	}
	return text
}

func timeText(at time.Time) string { return at.UTC().Format(history.TimeFormat) }

func printLines(page *show.Page, label string, lines []string) {
	for _, line := range lines {
		page.Text("  %-10s %s\n", label, line)
		label = ""
	}
}
