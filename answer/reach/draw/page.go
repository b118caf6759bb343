// Package draw writes a matrix of package reach as a page.
package draw

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/webpage"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// page holds the data of the page's template.
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
// cells are the darker the more ports are reachable and grey where that is not known, and the rules.
func HTML(w io.Writer, document *reach.Document) error {
	t, err := template.New("page").Funcs(webpage.Funcs()).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	page := page{
		Document: document, Style: webpage.Style(pageCSS),
		Policy: webpage.Policy(nil, string(webpage.Style(pageCSS))),
		Ports:  portList(document.Matrix.Ports),
	}
	for _, explained := range reach.Legend() {
		if n := document.Shown[explained.Shown]; n > 0 {
			page.Legend = append(page.Legend, counted{explained, n})
		}
	}
	seen := map[string]bool{}
	for _, group := range slices.Concat(document.From, document.To) {
		if !seen[group.Name] {
			seen[group.Name] = true
			page.Groups = append(page.Groups, group)
		}
	}
	cells := document.At()
	for f, from := range document.From {
		row := row{Name: from.Name, ID: fmt.Sprint("from", f+1)}
		for column, to := range document.To {
			row.Cells = append(row.Cells, newCell(from.Name, to.Name, cells[[2]int{f, column}], document.Wanted(column)))
		}
		page.Rows = append(page.Rows, row)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func portList(ports []reach.Port) string {
	var words []string
	for _, port := range ports {
		words = append(words, port.String())
	}
	return strings.Join(words, ", ")
}

// newCell returns the cell of two groups. Its letter stands for the verdicts that are
// neither REACHABLE nor UNREACHABLE.
func newCell(from, to string, asked []reach.Cell, wanted int) cell {
	c := cell{Class: "none", Title: terminal.Escape(from + " to " + to + ": not asked")}
	if len(asked) == 0 {
		return c
	}
	reachable, unknown, letters := 0, 0, ""
	lines := []string{from + " to " + to}
	for _, cell := range asked {
		switch cell.Verdict {
		case answer.Reachable:
			reachable++
		case answer.Unreachable, answer.OneWay:
		default:
			unknown++
		}
		if shown := letter(cell.Shown()); !strings.Contains(letters, shown) {
			letters += shown
		}
		c.Lines = append(c.Lines, linesOf(cell)...)
		lines = append(lines, cell.Port.String()+" "+string(cell.Verdict))
	}
	c.Class = fmt.Sprint("s", share(reachable, wanted))
	if reachable == 0 && unknown > 0 {
		c.Class = "unknown"
	}
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
	for _, explained := range reach.Legend() {
		if explained.Shown == shown && shown != reach.Shown(answer.Reachable) && shown != reach.Shown(answer.Unreachable) {
			return explained.Letter
		}
	}
	return ""
}

// linesOf returns the answer of a cell, or the answers of all members that were asked if
// they differ.
func linesOf(cell reach.Cell) []line {
	asked := cell.Asked
	if cell.Verdict != reach.Mixed {
		asked = asked[:1]
	}
	var all []line
	for _, answer := range asked {
		line := line{cell.To, cell.Port.String(), string(answer.Verdict), strings.Trim(answer.Reason+", "+answer.Rule, ", ")}
		if cell.Verdict == reach.Mixed {
			line.To += " (" + answer.From + " to " + answer.To + ")"
		}
		all = append(all, line)
	}
	return all
}
