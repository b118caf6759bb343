package timeline

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Text prints entries for people.
type Text struct {
	node, program int // columns
	width         int // of the terminal, 0 for none
}

// Text returns how the entries of the timeline are printed on a page.
func (t *Timeline) Text(page *show.Page) Text {
	const mostNode, mostProgram = 24, 14
	text := Text{width: page.Width, program: mostProgram}
	for _, file := range t.logs {
		text.node = max(text.node, len(file.node))
	}
	for _, db := range t.databases {
		text.node = max(text.node, len(history.DatabaseName(db.Node, db.Title)))
	}
	text.node = min(text.node, mostNode)
	return text
}

// Of returns an entry in lines.
func (x Text) Of(e *Entry) string {
	at := fmt.Sprintf("%-*s", len(history.TimeFormat), "(no time)")
	if !e.Time.IsZero() {
		at = e.Time.UTC().Format(history.TimeFormat)
	}
	head := fmt.Sprintf("%s  %-*s  %-*s  %-4s  ", at, x.node, terminal.Escape(history.DatabaseName(e.Node, e.Database)),
		x.program, terminal.Escape(cmp.Or(e.Program, "-")), e.Level)
	text := terminal.Escape(e.Annotated())
	if e.Module != "" {
		text = terminal.Escape(e.Module) + ": " + text
	}
	if e.Count > 1 {
		text += fmt.Sprintf("  × %d", e.Count)
		if !e.Until.IsZero() {
			text += " until " + e.untilText()
		}
	}
	const least = 30 // columns for a text beside the head
	switch {
	case x.width == 0:
		return head + text + "\n"
	case x.width-len(head) >= least:
		indent := "\n" + strings.Repeat(" ", len(head))
		return head + strings.Join(show.Wrap(text, x.width-len(head)), indent) + "\n"
	}
	const indent = "    "
	return strings.Join(show.Wrap(strings.TrimRight(head, " "), x.width), "\n"+indent) + "\n" + indent + strings.Join(show.Wrap(text, x.width-len(indent)), "\n"+indent) + "\n"
}

// Annotated returns the text of an entry, and behind it what users call what it names.
func (e *Entry) Annotated() string {
	if len(e.Names) == 0 {
		return e.Text
	}
	var names []string
	for _, name := range e.Names {
		names = append(names, name.Word+" = "+name.Name)
	}
	return e.Text + "  [" + strings.Join(names, ", ") + "]"
}

// untilText returns the time of the last entry that was folded, with its date if that is another day.
func (e *Entry) untilText() string {
	until := e.Until.UTC()
	if until.Format(time.DateOnly) == e.Time.UTC().Format(time.DateOnly) {
		return until.Format(time.TimeOnly)
	}
	return show.Time(until)
}
