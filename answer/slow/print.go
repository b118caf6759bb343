package slow

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints the report: the findings first, then what each node and each database has, at most limit
// rows of each list; 0 for all.
func (r *Report) Print(page *show.Page, limit int) {
	page.Printf("Findings: %d\n", len(r.Findings))
	for _, f := range r.Findings {
		printFinding(page, f)
	}
	for _, n := range r.Nodes {
		n.print(page, limit)
	}
	for _, c := range r.Churn {
		c.print(page, limit)
	}
}

// printFinding prints a finding, wrapped where it does not fit the terminal.
func printFinding(page *show.Page, f rule.Finding) {
	what := f.What
	if len(f.Nodes) > 0 {
		what = strings.Join(f.Nodes, ", ") + ": " + what
	}
	printWrapped(page, "- ", fmt.Sprintf("%s [%s] %s", f.Severity, f.Rule, what))
	for _, evidence := range f.Evidence {
		printWrapped(page, "    ", evidence)
	}
	printWrapped(page, "    ", f.Follows)
	for _, next := range f.Next {
		page.Printf("    Next: %s\n", terminal.Escape(next.Text(page.Call)))
	}
}

// maxPrinted bounds a text that is printed, in bytes.
const maxPrinted = 1000

// printWrapped prints a text behind a mark, and its further lines below the text.
func printWrapped(page *show.Page, mark, text string) {
	text = terminal.Escape(phrase.Shorten(text, maxPrinted))
	lines := []string{text}
	if page.Width > 0 {
		lines = show.Wrap(text, max(page.Width-len(mark), 20))
	}
	for i, line := range lines {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		page.Printf("%s%s\n", mark, line)
	}
}

func (n *Node) print(page *show.Page, limit int) {
	if n.Node != "" {
		page.Printf("\nNode %s\n", terminal.Escape(n.Node))
	}
	n.counters.print(page)
	if d := n.Datapath; d != nil {
		page.Printf("\nFlows of the datapath: %d, %d masks\n", d.Flows, d.Masks)
		if n.NotReplayed != "" {
			page.Printf("Flapping: not judged, because %s\n", n.NotReplayed)
		} else {
			page.Printf("Flapping: %d\n", len(n.Flapping))
		}
		printExplosions(page, n.Explosions)
	}
	if o := n.Offload; o != nil {
		o.print(page, limit)
	}
	if c := n.Conntrack; c != nil {
		c.print(page, limit)
	}
	if len(n.Engine) > 0 {
		page.Printf("\nComputed again by ovn-controller\n")
		t := page.Table("TIMES", "INCREMENTALLY", "NODE")
		for _, e := range first(n.Engine, limit) {
			t.AppendRow(table.Row{e.Recompute, e.Compute, terminal.Escape(e.Name)})
		}
		t.Render()
	}
}

func printExplosions(page *show.Page, found []flows.Explosion) {
	page.Printf("Explosions: %d\n", len(found))
	for _, e := range found {
		printWrapped(page, "  ", e.String())
		if !e.Traced && len(e.Rules) > 0 {
			printWrapped(page, "    ", "Not traced ("+e.Why+"); flows that look at these fields:")
		}
		for _, text := range ruleTexts(e.Rules) {
			printWrapped(page, "    ", text)
		}
	}
}

// first returns the elements of a list within a limit; 0 is none.
func first[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}

func (o *Offload) print(page *show.Page, limit int) {
	page.Printf("\nOffloaded: %d of %d flows, %d in part; hw-offload is %t\n", o.Offloaded, o.Flows, o.Partial, o.Enabled)
	if len(o.Reasons) == 0 {
		return
	}
	t := page.Table("FLOWS", "PACKETS", "NOT OFFLOADED FOR")
	for _, r := range first(o.Reasons, limit) {
		t.AppendRow(table.Row{r.Flows, r.Packets, terminal.Escape(r.What)})
	}
	t.Render()
}

func (c *Conntrack) print(page *show.Page, limit int) {
	page.Printf("\nConnections: %d in %s", c.Entries, phrase.Count(c.AllZones, "zone"))
	if c.Limit > 0 {
		page.Printf(" of at most %d (%s)", c.Limit, terminal.Escape(c.LimitFrom))
	}
	page.Printf("\n")
	if c.Entries == 0 {
		return
	}
	zones := page.Table("ENTRIES", "UNREPLIED", "ZONE", "OF", "MOST FROM")
	for _, z := range first(c.Zones, limit) {
		talker := ""
		if z.Talker != nil {
			talker = fmt.Sprintf("%s: %d", talkerText(z.Talker), z.Talker.Entries)
		}
		zones.AppendRow(table.Row{z.Entries, z.Unreplied, z.Zone, terminal.Escape(z.Owner), terminal.Escape(talker)})
	}
	zones.Render()
	talkers := page.Table("ENTRIES", "FROM", "OF")
	for _, t := range first(c.Talkers, limit) {
		talkers.AppendRow(table.Row{t.Entries, t.Address, terminal.Escape(t.Name)})
	}
	talkers.Render()
	states := page.Table("ENTRIES", "STATE")
	for _, s := range first(c.States, limit) {
		states.AppendRow(table.Row{s.Entries, terminal.Escape(s.Name)})
	}
	states.Render()
}

func (c *Churn) print(page *show.Page, limit int) {
	page.Printf("\n%s: %s", terminal.Escape(c.Database), phrase.Count(c.Transactions, "transaction"))
	if between := c.To.Sub(c.From); between > 0 {
		page.Printf(" in %s", phrase.Duration(between))
	}
	page.Printf("\n")
	if len(c.Rows) == 0 {
		return
	}
	t := page.Table("CHANGES", "EVERY", "NEW", "GONE", "ROW", "COLUMNS")
	for _, r := range first(c.Rows, limit) {
		every := ""
		if r.Every > 0 {
			every = fmt.Sprintf("%.1f s", r.Every)
		}
		t.AppendRow(table.Row{r.Changes, every, r.Inserted, r.Deleted, terminal.Escape(r.Table + " " + r.Row), terminal.Escape(strings.Join(first(r.Columns, 3), ", "))})
	}
	t.Render()
}
