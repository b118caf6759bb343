package compare

import (
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints how many objects of each kind differ, and then a line for each of
// them: the first of each kind, or with detail all, and what follows from each.
func (c *Comparison) Print(page *show.Page, detail bool) {
	const most = 20 // of one kind
	page.WarnEach("", c.Remarks)
	page.WarnEach("not compared: ", c.Missing)
	if c.Same {
		page.Printf("No change.\n")
		return
	}
	summary := page.Table("kind", "added", "gone", "changed", "flows")
	for _, k := range c.Kinds() {
		summary.AppendRow([]any{terminal.Escape(k.Kind), k.Added, k.Gone, k.Changed, k.Flows})
	}
	summary.Render()
	page.Printf("\n")
	list := page.Table("change", "what", "values")
	left := 0
	at := map[string]int{}
	for _, finding := range c.Findings {
		if at[finding.Kind]++; at[finding.Kind] > most && !detail {
			left++
			continue
		}
		list.AppendRow(row(finding, detail))
	}
	list.Render()
	if left > 0 {
		page.Printf("and %d more; --detail prints all\n", left)
	}
}

// row returns the row of a change. Without detail, values are shortened.
func row(finding Finding, detail bool) []any {
	const most = 200 // bytes
	name, values := finding.Subject(), finding.Details()
	if place := finding.Place(); place != "" {
		name = place + ": " + name
	}
	if !detail {
		return []any{finding.Change, terminal.Escape(phrase.Shorten(name, most)), terminal.Escape(phrase.Shorten(values, most))}
	}
	values = terminal.Escape(values)
	if finding.Flows != nil {
		values = joinLines(values, "flows: "+finding.Flows.String())
	}
	for _, text := range finding.Follows {
		values = joinLines(values, terminal.Escape(text))
	}
	return []any{finding.Change, terminal.Escape(name), values}
}

func joinLines(before, after string) string {
	if before == "" {
		return after
	}
	return before + "\n" + after
}
