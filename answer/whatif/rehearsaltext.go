package whatif

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/reach/draw"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the rehearsal; with all, every difference.
func (r *Rehearsal) Print(page *show.Page, all bool) {
	for _, text := range r.Doubts {
		page.Printf("UNDETERMINED: %s\n", terminal.Escape(text))
	}
	page.Printf("from %s to %s\n", r.From, r.To)
	r.Effect.print(page, all)
	for _, mixed := range r.Mixed {
		page.Headline("While only %s is of %s", mixed.First, r.To)
		mixed.print(page, all)
	}
	page.WarnEach("", r.Remarks)
}

func (m *Mixed) print(page *show.Page, all bool) {
	if len(m.Waiting) > 0 {
		page.Printf("%s: ovn-match-northd-version is set: the flows stay as they are, and no change of the databases reaches them until both are of one release\n", terminal.Escape(strings.Join(m.Waiting, ", ")))
		return
	}
	m.Effect.print(page, all)
}

// text returns a refusal in one line; what says that it is new, or is no more.
func (r Refusal) text(what string) string {
	who := r.Program
	if len(r.Nodes) > 0 {
		who += " of " + strings.Join(r.Nodes, ", ")
	}
	return fmt.Sprintf("%s %s: %s; the first: %s", who, fmt.Sprintf(what, phrase.Count(r.Count, "message")), r.Problem, r.Example)
}

func (e *Effect) print(page *show.Page, all bool) {
	lines := slices.Clone(e.Ended)
	for _, refused := range e.Refused {
		lines = append(lines, refused.text("logs %s that it did not before"))
	}
	for _, accepted := range e.Accepted {
		lines = append(lines, accepted.text("no longer logs %s"))
	}
	for _, row := range e.Rows {
		if row.After == 0 {
			lines = append(lines, fmt.Sprintf("vanishes: %s: it had %s", row.What, phrase.Count(row.Before, "flow")))
		} else {
			lines = append(lines, fmt.Sprintf("appears: %s: it has %s", row.What, phrase.Count(row.After, "flow")))
		}
	}
	for i, line := range lines {
		if i == maxDifferences && !all {
			page.Printf("%d more; --detail and -o json list them\n", len(lines)-i)
			break
		}
		page.Printf("%s\n", terminal.Escape(line))
	}
	if len(e.Ended) > 0 {
		return
	}
	if e.Flows == nil {
		page.Printf("flows are not compared one by one: the releases have different tables\n")
	}
	printNodes(page, all, e.Flows)
	if e.Logical != nil {
		e.Logical.print(page, all, "logical flows")
	}
	for _, collision := range e.Collisions {
		page.Printf("UNDETERMINED: %s\n", terminal.Escape(collision.String()))
	}
	e.Pairs.print(page)
}

func (p *Pairs) print(page *show.Page) {
	draw.Changed(page, p.Changed)
	page.Printf("%d of %s changed\n", len(p.Changed), phrase.Count(p.Compared, "cell"))
	if len(p.Unknown) > 0 {
		page.Printf("UNDETERMINED in one of the two only:\n")
		draw.Changed(page, p.Unknown)
	}
	if p.Undetermined > 0 {
		page.Printf("%s with an answer that is UNDETERMINED\n", phrase.Count(p.Undetermined, "cell"))
	}
	page.WarnEach("", p.Remarks)
}
