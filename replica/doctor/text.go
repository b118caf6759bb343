package doctor

import (
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints a line for each check, and how to fix what does not work.
func (r Report) Print(p *show.Page) {
	t := p.Table("", "state", "details")
	for _, c := range r.Checks {
		t.AppendRow([]any{c.Name, c.State, terminal.EscapeLines(c.What)})
		if c.Mend != "" {
			t.AppendRow([]any{"", "", "  fix: " + terminal.EscapeLines(c.Mend)})
		}
	}
	t.Render()
	if r.Start != "" {
		p.Printf("\nstart would use %s\n", terminal.EscapeLines(r.Start))
	}
}
