package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/show"
	"ovs-offline/internal/svg"
	"ovs-offline/internal/terminal"
)

// The widths of a matrix, in columns of the terminal.
const (
	usualWidth = 80 // of a line that goes to no terminal
	nameWidth  = 18 // of the name of a group
	cellWidth  = 14
)

// Table prints a matrix as tables that fit the terminal, with a legend.
func Table(p *show.Page, d *reach.Document) {
	if len(d.From) == 0 || len(d.To) == 0 {
		p.Printf("There are no endpoints to ask about.\n")
		return
	}
	width := cmp.Or(p.Width, usualWidth)
	fmt.Fprintln(p.Out, show.Wrapped("Ports: "+portWords(d.Ports), width))
	if over := d.Over(); over != "" {
		fmt.Fprintln(p.Out, show.Wrapped(over, width))
	}
	cells := d.At()
	columns := make([][]string, len(d.To)) // the texts of the cells, by column and row
	for t := range d.To {
		for f := range d.From {
			columns[t] = append(columns[t], cellText(cells[[2]int{f, t}], d.Unasked(f, t), d.Wanted(t)))
		}
	}
	for first := 0; first < len(columns); {
		first = printBlock(p, d, columns, first, width)
	}
	printLegend(p, d)
	printGroups(p, d)
}

// printBlock prints as many columns as fit, and returns the first that was not printed.
func printBlock(p *show.Page, d *reach.Document, columns [][]string, first, width int) int {
	const padding = 2
	used := nameWidth
	last := first
	for ; last < len(columns); last++ {
		widest := text.LongestLineLen(nameText(d.To[last].Name, cellWidth))
		for _, cell := range columns[last] {
			widest = max(widest, text.LongestLineLen(cell))
		}
		if used += widest + padding; used > width && last > first {
			break
		}
	}
	header := []any{"from \\ to"}
	for _, to := range d.To[first:last] {
		header = append(header, nameText(to.Name, cellWidth))
	}
	p.Printf("\n")
	t := p.Table(header...)
	t.Style().Format.Header = text.FormatDefault // names have lower case
	t.Style().Options.SeparateRows = true
	for f, from := range d.From {
		row := []any{nameText(from.Name, nameWidth-padding)}
		for _, column := range columns[first:last] {
			row = append(row, column[f])
		}
		t.AppendRow(row)
	}
	t.Render()
	return last
}

// nameText returns a name in lines of a width, cut in its middle if it takes more than two.
// The first line ends behind a slash or a blank if the rest fits then.
func nameText(name string, width int) string {
	name = svg.Shorten(escapedLine(name), 2*width)
	if svg.Width(name) > width {
		at := strings.LastIndexAny(name[:min(len(name), width)], "/ ") + 1
		if at > 0 && svg.Width(name[at:]) <= width {
			return strings.TrimSpace(name[:at]) + "\n" + name[at:]
		}
	}
	return text.WrapHard(name, width)
}

// escapedLine returns a text from outside in one line.
func escapedLine(s string) string { return strings.ReplaceAll(terminal.Escape(s), "\n", " ") }

// cellText returns the ports that are reachable, and behind a letter those with another
// verdict than UNREACHABLE; or one letter if all that were wanted have the same.
func cellText(cells []reach.Cell, unasked bool, wanted int) string {
	if len(cells) == 0 {
		if unasked {
			return "."
		}
		return ""
	}
	by := map[reach.Shown][]reach.Port{}
	for _, c := range cells {
		by[c.Shown()] = append(by[c.Shown()], c.Port)
	}
	var lines []string
	for _, l := range reach.Legend() {
		ports := by[l.Shown]
		reachable := l.Shown == reach.Shown(answer.Reachable)
		switch {
		case len(ports) == wanted && reachable:
			return "all"
		case len(ports) == wanted:
			return l.Letter
		case len(ports) == 0 || l.Shown == reach.Shown(answer.Unreachable) && len(cells) == wanted:
		case reachable:
			lines = append(lines, show.Wrapped(portWords(ports), cellWidth))
		default:
			lines = append(lines, show.Wrapped(l.Letter+" "+portWords(ports), cellWidth))
		}
	}
	return strings.Join(lines, "\n")
}

// portWords returns ports in words: icmp tcp 80 443.
func portWords(ports []reach.Port) string {
	var words []string
	protocol := ""
	for _, p := range slices.SortedFunc(slices.Values(ports), reach.ComparePorts) {
		if p.Protocol != protocol {
			protocol = p.Protocol
			words = append(words, protocol)
		}
		if p.Number != 0 {
			words = append(words, fmt.Sprint(p.Number))
		}
	}
	return strings.Join(words, " ")
}

// printLegend explains the texts of the cells, and counts them.
func printLegend(p *show.Page, d *reach.Document) {
	p.Printf("\nA cell has the ports that are reachable, or all; behind a letter, other ports.\n")
	for _, l := range reach.Legend() {
		if n := d.Shown[l.Shown]; n > 0 {
			p.Printf("%6d  %1s  %s\n", n, strings.Trim(l.Letter, "R"), l.Meaning)
			printCauses(p, d.CausesOf(l.Shown))
		}
	}
	if slices.ContainsFunc(d.From, func(g reach.Group) bool { return len(g.Members) == 1 }) {
		p.Printf("%6s  %s  %s\n", "", ".", "not asked: one endpoint alone, or networks apart from each other")
	}
}

// printCauses prints why cells are not plain: the most frequent causes.
func printCauses(p *show.Page, causes []reach.Cause) {
	const most, indent = 5, 18
	for i, c := range causes {
		if i == most {
			p.Printf("%*s%d more causes; -o json has all\n", indent, "", len(causes)-most)
			return
		}
		lines := show.Wrapped(escapedLine(c.Text), cmp.Or(p.Width, usualWidth)-indent)
		p.Printf("%*d  %s\n", indent-2, c.Count, strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", indent)))
	}
}

// printGroups prints how many members each group has, and which of them were asked.
func printGroups(p *show.Page, d *reach.Document) {
	const most = 3
	p.Printf("\n")
	t := p.Table("group", "members", "asked")
	t.Limit = cmp.Or(t.Limit, usualWidth)
	seen, notAsked := map[string]bool{}, false
	for _, g := range slices.Concat(d.From, d.To) {
		if seen[g.Name] || len(g.Members) == 1 && g.Members[0] == g.Name {
			continue
		}
		seen[g.Name] = true
		notAsked = notAsked || len(g.Asked) < len(g.Members)
		asked := strings.Join(g.Asked[:min(most, len(g.Asked))], ", ")
		if more := len(g.Asked) - most; more > 0 {
			asked += fmt.Sprintf(" +%d", more)
		}
		t.AppendRow([]any{escapedLine(g.Name), len(g.Members), escapedLine(asked)})
	}
	if len(seen) == 0 {
		return
	}
	t.Render()
	if notAsked {
		p.Printf("One member of each node stands for a group; --all-members asks each.\n")
	}
}

// Changes prints the cells that changed their verdicts, each with the rules.
func Changes(p *show.Page, c *reach.Changes) {
	Changed(p, c.Changed)
	p.Printf("%d of %d cells changed\n", len(c.Changed), c.Compared)
}

// Changed prints cells that changed.
func Changed(p *show.Page, list []reach.Change) {
	const indent = 10
	for _, change := range list {
		p.Printf("%s -> %s  %s\n", escapedLine(change.From), escapedLine(change.To), change.Port)
		if change.Witness.Packet != "" {
			p.Printf("  packet  %s\n", escapedLine(change.Witness.Packet))
		}
		for _, side := range []struct {
			when string
			reach.Side
		}{{"before", change.Before}, {"after", change.After}} {
			words := string(side.Verdict)
			for _, more := range []string{side.Reason, side.Rule} {
				if more != "" {
					words += ", " + more
				}
			}
			lines := show.Wrapped(escapedLine(words), cmp.Or(p.Width, usualWidth)-indent)
			p.Printf("  %-6s  %s\n", side.when, strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", indent)))
		}
	}
}
