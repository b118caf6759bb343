package why

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the document for people: the cause first.
func (d *Document) Print(page *show.Page) {
	page.Text("%s  %s: %s\n", d.Verdict, terminal.Escape(d.Question), terminal.Escape(d.Cause))
	d.printLines(page, "evidence", d.Evidence)
	var next []string
	for _, step := range d.Next {
		next = append(next, step.Text(page.Call))
	}
	d.printLines(page, "next", next)
	d.printLines(page, "also", d.Also)
	d.printLines(page, "ruled out", d.RuledOut)
	d.printLines(page, "unknown", d.Unjudged)
}

func (d *Document) printLines(page *show.Page, label string, lines []string) {
	for _, line := range lines {
		page.Text("  %-10s %s\n", label, terminal.Escape(line))
		label = ""
	}
}

// Markdown writes the document as a block of code that tickets show as it is: no name from outside ends the block, or is
// a link or an image in it.
func (d *Document) Markdown(w io.Writer, call show.Call) error {
	var text bytes.Buffer
	d.Print(&show.Page{Out: &text, Err: io.Discard, Call: call})
	fence := "```"
	for strings.Contains(text.String(), fence) {
		fence += "`"
	}
	_, err := fmt.Fprintf(w, "%stext\n%s%s\n", fence, text.String(), fence)
	return err
}
