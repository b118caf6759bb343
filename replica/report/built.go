package report

import (
	"fmt"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/workdir"
)

// built counts what became of the commands that a node was made from.
func built(b *workdir.Built) string {
	text := phrase.Count(b.CarriedOut, "command") + " carried out"
	if len(b.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(b.Refused))
	}
	if len(b.Failed) > 0 {
		text += fmt.Sprintf(", %d failed", len(b.Failed))
	}
	return text
}

// printBuilt prints what became of the commands that the node was made from.
func (r *Report) printBuilt(p *show.Page) {
	if r.Built != nil {
		PrintBuilt(p, r.Built)
	}
}

// PrintBuilt prints what became of the commands of a text: how many were carried out, and which were not.
func PrintBuilt(p *show.Page, b *workdir.Built) {
	p.Printf("Commands of the text: %s.\n", built(b))
	t := p.Table("line", "command", "result", "reason")
	for _, part := range []struct {
		result   string
		commands []workdir.Command
	}{{"refused", b.Refused}, {"failed", b.Failed}} {
		for _, c := range part.commands {
			t.AppendRow([]any{c.Line, terminal.Escape(c.Command), part.result, terminal.Escape(c.Reason)})
		}
	}
	if t.Length() > 0 {
		t.Render()
	}
	p.Lines("Assumed, since the commands do not say it", b.Assumptions)
	if len(b.Assumptions) == 0 {
		p.Printf("\n")
	}
}
