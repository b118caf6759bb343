package show

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is a table that fits the terminal. Where it is too wide, it leaves out
// the columns that hold nothing but zeros or empty texts, and wraps wide ones.
type Table struct {
	table.Writer
	Limit   int // of a line, in columns of the terminal; 0 for none
	columns []column
}

// column is a column of a table.
type column struct {
	width int  // of its widest line
	used  bool // a cell is neither empty nor 0
}

// Table returns a table that its Render method prints.
func (p *Page) Table(header ...any) *Table {
	t := &Table{Writer: table.NewWriter(), Limit: p.Width}
	t.SetOutputMirror(p.Out)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatUpper
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	for _, title := range header {
		t.columns = append(t.columns, column{width: lineLength(title)})
	}
	return t
}

func lineLength(cell any) int { return text.LongestLineLen(fmt.Sprint(cell)) }

// AppendRow adds a row with a cell for each column.
func (t *Table) AppendRow(row table.Row, config ...table.RowConfig) {
	t.Writer.AppendRow(row, config...)
	for i, cell := range row {
		c := &t.columns[i]
		c.width = max(c.width, lineLength(cell))
		c.used = c.used || cell != "" && cell != 0
	}
}

// Fits reports whether the table fits the terminal as it is.
func (t *Table) Fits() bool { return t.Limit == 0 || t.length(t.Limit) <= t.Limit }

// Render prints the table.
func (t *Table) Render() string {
	if !t.Fits() {
		widest := t.fit()
		var configs []table.ColumnConfig
		for i, c := range t.columns {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Hidden: !c.used, WidthMax: widest, WidthMaxEnforcer: wrapLines})
		}
		t.SetColumnConfigs(configs)
	}
	return t.Writer.Render()
}

// fit makes unused columns narrow and returns the width that no column may exceed.
// Narrow columns are not wrapped, even where lines are too long then.
func (t *Table) fit() (widest int) {
	const narrow = 20
	for i, c := range t.columns {
		if !c.used {
			t.columns[i].width = 0
		}
	}
	for widest = t.Limit; widest > narrow && t.length(widest) > t.Limit; {
		widest--
	}
	return widest
}

// length returns the length of a line if no column is wider than widest.
func (t *Table) length(widest int) int {
	const padding = 2
	n := -1 // nothing is printed behind the last column
	for _, c := range t.columns {
		if c.width > 0 {
			n += min(c.width, widest) + padding
		}
	}
	return n
}

// wrapLines wraps each line of a cell, between words where it can.
func wrapLines(cell string, width int) string {
	lines := strings.Split(cell, "\n")
	for i, line := range lines {
		lines[i] = text.WrapSoft(line, width)
	}
	return strings.Join(lines, "\n")
}
