package cluster

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Next returns a step as the next one of a finding: where, and what.
func (s Step) Next() rule.Next {
	text := s.Text
	switch {
	case s.Action == Stop:
		text = fmt.Sprintf("%s   # %s", s.Command, s.Text)
	case s.Action == Wait:
		text = fmt.Sprintf("%s   # until it prints %q", s.Command, s.Until)
	case s.Command != "" && s.Text != "":
		text = fmt.Sprintf("%s   # %s", s.Command, s.Text)
	case s.Command != "":
		text = s.Command
	}
	if s.On == "" {
		return rule.Next{Command: text}
	}
	return rule.Elsewhere("on "+s.On, text)
}

// String returns a step as text for people.
func (s Step) String() string { return s.Next().Text(nil) }

// Print prints the report for people.
func (r *Report) Print(page *show.Page) {
	for i, c := range r.Clusters {
		if i > 0 {
			page.Printf("\n")
		}
		c.print(page)
	}
	for _, file := range r.Standalone {
		page.Printf("%s: a standalone database, in no cluster\n", terminal.Escape(file))
	}
	for _, file := range r.Unjudged {
		page.Warn("%s says nothing about a cluster: %s", file.File, file.Reason)
	}
}

func (c *Cluster) print(page *show.Page) {
	id := "cluster not known"
	if c.ID != "" {
		id = fmt.Sprintf("cluster %s (%s)", short(c.ID), c.ID)
	}
	page.Headline("%s, %s", terminal.Escape(c.Database), terminal.Escape(id))
	if n := len(c.Committed); n > 0 {
		page.Printf("%s, a majority is %d; election timer %d ms\n", phrase.Count(n, "server"), n/2+1, c.ElectionTimer)
	}
	if c.Pending != nil {
		page.Printf("%s\n", show.Wrapped(terminal.Escape("not committed: the servers "+describe(c.Pending)), width(page)))
	}
	page.Printf("\n")
	if c.isPrinted() {
		c.printSeen(page)
	} else {
		c.printServers(page)
		c.printTerms(page)
	}
	switch {
	case len(c.Problems) > 0:
	case c.isPrinted():
		page.Printf("The statuses show nothing wrong.\n\n")
	default:
		page.Printf("Nothing is wrong.\n")
	}
	for _, p := range c.Problems {
		p.print(page)
	}
	for _, text := range c.Unknown {
		printItem(page, "Not known: ", text)
	}
}

// isPrinted reports whether the cluster is known from outputs of cluster/status alone.
func (c *Cluster) isPrinted() bool { return len(c.Unknown) > 0 }

// printSeen prints the servers and the leader as outputs of cluster/status have them.
func (c *Cluster) printSeen(page *show.Page) {
	t := page.Table("SERVER", "ADDRESS", "STATE", "ROLE", "TERM", "LOG", "CONNECTED WITH")
	leader := short(c.Leader)
	for _, s := range c.Servers {
		row := table.Row{short(s.ID), terminal.Escape(s.Address), string(s.State), terminal.Escape(s.Role), "", "", ""}
		if s.Term > 0 {
			row[4] = s.Term
		}
		if s.Last > 0 {
			row[5] = fmt.Sprintf("%d..%d", s.First, s.Last)
		}
		if s.Connected != nil {
			row[6] = cmp.Or(terminal.Escape(shorts(s.Connected)), "none")
		}
		if s.ID == c.Leader {
			leader = fmt.Sprintf("%s at %s", short(s.ID), s.Address)
		}
		t.AppendRow(row)
	}
	t.Render()
	page.Printf("\n")
	for _, term := range c.Terms {
		text := leader
		if term.Leader == "" {
			text = "unknown"
		}
		page.Printf("Leader in term %d: %s\n", term.Last, terminal.Escape(text))
	}
	page.Printf("\n")
	c.printNames(page)
}

func shorts(servers []string) string {
	var list []string
	for _, server := range servers {
		list = append(list, short(server))
	}
	return phrase.FirstNames(list)
}

func width(page *show.Page) int { return cmp.Or(page.Width, 80) }

func (c *Cluster) printServers(page *show.Page) {
	t := page.Table("SERVER", "ADDRESS", "STATE", "TERM", "LOG", "LAST CHANGE")
	for _, s := range c.Servers {
		row := table.Row{short(s.ID), terminal.Escape(s.Address), string(s.State)}
		if s.State == Absent || s.State == Joining {
			row = append(row, "", "", "")
		} else {
			log := fmt.Sprintf("%d..%d", s.First, s.Last)
			if s.Committed < s.Last {
				log += fmt.Sprintf(" (%d committed)", s.Committed)
			}
			row = append(row, s.Term, log, show.Time(s.Changed))
		}
		t.AppendRow(row)
	}
	t.Render()
	page.Printf("\n")
	c.printNames(page)
}

// printNames prints the file or the host of each server.
func (c *Cluster) printNames(page *show.Page) {
	for _, s := range c.Servers {
		if s.Name != "" {
			page.Printf("%s: %s\n", short(s.ID), terminal.Escape(s.Name))
		}
	}
	page.Printf("\n")
}

// shownTerms is how many terms are printed.
const shownTerms = 20

func (c *Cluster) printTerms(page *show.Page) {
	if len(c.Terms) == 0 {
		return
	}
	terms := c.Terms[max(0, len(c.Terms)-shownTerms):]
	t := page.Table("TERM", "LEADER", "ENTRIES", "FROM", "TO")
	for _, term := range terms {
		number, leader := fmt.Sprint(term.First), short(term.Leader)
		if term.Last > term.First {
			number = fmt.Sprintf("%d-%d", term.First, term.Last)
		}
		switch {
		case term.isVain():
			leader = "none elected"
		case term.Inferred:
			leader += " (by votes)"
		case term.Unknown:
			leader = "not known"
		case leader == "":
			leader = "ovsdb-tool"
		}
		t.AppendRow(table.Row{number, leader, term.Entries, show.Time(term.Begin), show.Time(term.End)})
	}
	if left := len(c.Terms) - len(terms); left > 0 {
		page.Printf("%d earlier terms are not printed.\n", left)
	}
	t.Render()
	page.Printf("\n")
}

func (p *Problem) print(page *show.Page) {
	page.Printf("%s\n", show.Wrapped(terminal.Escape(strings.ToUpper(string(p.Severity))+": "+p.What), width(page)))
	for _, text := range p.Evidence {
		printItem(page, "  - ", text)
	}
	if p.Follows != "" {
		printItem(page, "  => ", p.Follows)
	}
	if len(p.Repair) > 0 {
		page.Printf("  Repair:\n")
	}
	for i, step := range p.Repair {
		where := ""
		if step.On != "" {
			where = "on " + step.On + ": "
		}
		text := step.Text
		if step.Action == Wait {
			text = fmt.Sprintf("wait until this prints %q:", step.Until)
		}
		printItem(page, fmt.Sprintf("  %2d. ", i+1), where+text)
		printCommand(page, step.Command)
	}
	page.Printf("\n")
}

// printCommand prints a command in lines that a shell joins when they are pasted.
func printCommand(page *show.Page, command string) {
	const indent = "        "
	words := strings.Fields(terminal.Escape(command))
	for len(words) > 0 {
		line := words[0]
		n := 1
		for n < len(words) && len(indent)+len(line)+1+len(words[n])+len(` \`) <= width(page) {
			line += " " + words[n]
			n++
		}
		if words = words[n:]; len(words) > 0 {
			line += ` \`
		}
		page.Printf("%s%s\n", indent, line)
	}
}

// printItem prints a text that begins with a mark, and indents its further lines.
func printItem(page *show.Page, mark, text string) {
	for i, line := range show.Wrap(terminal.Escape(text), max(20, width(page)-len(mark))) {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		page.Printf("%s%s\n", mark, line)
	}
}
