// Package draw writes a matrix of package reach as a page.
package draw

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/terminal"
	"ovs-offline/reach"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/draw"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// page is what the template of the page takes.
type page struct {
	*reach.Document
	Policy string
	Style  template.CSS
	Ports  string
	Legend []counted
	Groups []reach.Group
	Rows   []row
}

// counted is a line of the legend with the number of cells.
type counted struct {
	reach.Explained
	Count int
}

type row struct {
	Name, ID string
	Cells    []cell
}

// cell is a pair of groups.
type cell struct {
	Class, Text, Title string
	Lines              []line
}

// line is the answer of a cell about a port.
type line struct {
	To, Port, Verdict, Why string
}

// HTML writes a matrix as a page that needs no server and no network: a heat map, whose
// cells are the darker the more ports are reachable, and the rules.
func HTML(w io.Writer, d *reach.Document) error {
	t, err := template.New("page").Funcs(template.FuncMap{"plain": terminal.Escape}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	p := page{
		Document: d, Style: template.CSS(pageCSS), // a part of the program
		Policy: "default-src 'none'; style-src " + draw.Digest(pageCSS) + "; base-uri 'none'; form-action 'none'",
		Ports:  portList(d.Matrix.Ports),
	}
	for _, l := range reach.Legend() {
		if n := d.Shown[l.Shown]; n > 0 {
			p.Legend = append(p.Legend, counted{l, n})
		}
	}
	seen := map[string]bool{}
	for _, g := range slices.Concat(d.From, d.To) {
		if !seen[g.Name] {
			seen[g.Name] = true
			p.Groups = append(p.Groups, g)
		}
	}
	cells := d.At()
	for f, from := range d.From {
		r := row{Name: from.Name, ID: fmt.Sprint("from", f+1)}
		for t, to := range d.To {
			r.Cells = append(r.Cells, newCell(from.Name, to.Name, cells[[2]int{f, t}], d.Wanted(t)))
		}
		p.Rows = append(p.Rows, r)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func portList(ports []reach.Port) string {
	var words []string
	for _, p := range ports {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

// newCell returns the cell of two groups. Its letter is that of the verdicts that are
// neither REACHABLE nor UNREACHABLE.
func newCell(from, to string, asked []reach.Cell, wanted int) cell {
	c := cell{Class: "none", Title: terminal.Escape(from + " to " + to + ": not asked")}
	if len(asked) == 0 {
		return c
	}
	reachable, letters := 0, ""
	lines := []string{from + " to " + to}
	for _, a := range asked {
		if a.Verdict == answer.Reachable {
			reachable++
		}
		if l := letter(a.Shown()); !strings.Contains(letters, l) {
			letters += l
		}
		c.Lines = append(c.Lines, linesOf(a)...)
		lines = append(lines, a.Port.String()+" "+string(a.Verdict))
	}
	c.Class = fmt.Sprint("s", share(reachable, wanted))
	c.Text, c.Title = letters, terminal.EscapeLines(strings.Join(lines, "\n"))
	return c
}

// share returns a number from 0 to 10; only nothing is 0, and only all is 10.
func share(part, whole int) int {
	switch part {
	case 0:
		return 0
	case whole:
		return 10
	}
	return min(max(1, 10*part/whole), 9)
}

func letter(shown reach.Shown) string {
	for _, l := range reach.Legend() {
		if l.Shown == shown && shown != reach.Shown(answer.Reachable) && shown != reach.Shown(answer.Unreachable) {
			return l.Letter
		}
	}
	return ""
}

// linesOf returns the answer of a cell, or the answers of all members that were asked if
// they differ.
func linesOf(c reach.Cell) []line {
	asked := c.Asked
	if c.Verdict != reach.Mixed {
		asked = asked[:1]
	}
	var all []line
	for _, a := range asked {
		l := line{c.To, c.Port.String(), string(a.Verdict), strings.Trim(a.Reason+", "+a.Rule, ", ")}
		if c.Verdict == reach.Mixed {
			l.To += " (" + a.From + " to " + a.To + ")"
		}
		all = append(all, l)
	}
	return all
}
