package file

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// KnownTable says which rows and columns of a table are known, where a command printed only some.
type KnownTable struct {
	Rows    int      `json:"rows"`
	All     bool     `json:"all,omitempty"`     // these are all rows of the table
	Columns []string `json:"columns,omitempty"` // which are known of each row, sorted; without them, all are known
	// Unnamed reports that the UUIDs of the rows are not known, so that nothing refers to them.
	Unnamed bool `json:"unnamed,omitempty"`
}

// Has reports whether columns are known of each row.
func (t KnownTable) Has(columns ...string) bool {
	return len(t.Columns) == 0 || !slices.ContainsFunc(columns, func(column string) bool { return !slices.Contains(t.Columns, column) })
}

// String says what is known: "2 rows, and not all, with 3 columns: action, match, priority".
func (t KnownTable) String() string {
	text := phrase.Count(t.Rows, "row")
	if t.All {
		text = "all " + text
	} else {
		text += ", and not all"
	}
	if len(t.Columns) > 0 {
		text += fmt.Sprintf(", with %s: %s", phrase.Count(len(t.Columns), "column"), strings.Join(t.Columns, ", "))
	}
	return text
}

// OnlyWhole says that these tables are known as a whole, and of all others nothing, but for those of which parts are known.
func (x *Index) OnlyWhole(tables []string) { x.whole = append([]string{}, tables...) }

// OnlyParts says what is known of the tables of an index: of others, nothing is.
func (x *Index) OnlyParts(known map[string]KnownTable) { x.whole, x.known = []string{}, known }

// WithParts returns an index of a database with the tables of which parts is known beside it. To close it closes both.
func (x *Index) WithParts(parts *Index) *Index {
	joined := *x
	joined.parts, joined.known = parts, parts.known
	joined.close = func() {
		x.Close()
		parts.Close()
	}
	return &joined
}

// of returns the index that has a table: another one for a table that is known in part.
func (x *Index) of(table string) *Index {
	if _, known := x.known[table]; known && x.parts != nil {
		return x.parts
	}
	return x
}

// Lacks says what is not known of a table: the table, a column, or with rows whether its rows are all. It returns "" for a table of which
// the index has what is asked: each table of a database file.
func (x *Index) Lacks(table string, rows bool, columns ...string) string {
	if x == nil {
		return "the table " + table
	}
	known, part := x.known[table]
	if !part {
		if x.whole != nil && !slices.Contains(x.whole, table) {
			return "the table " + table
		}
		return ""
	}
	if rows && !known.All {
		return "all rows of the table " + table
	}
	for _, column := range columns {
		if !known.Has(column) {
			return fmt.Sprintf("the column %s of the table %s", column, table)
		}
	}
	return ""
}

// OnlyInPart reports whether no table of a database is known as a whole.
func (x *Index) OnlyInPart() bool { return x != nil && x.whole != nil && len(x.whole) == 0 }

// InPart reports whether only some tables, rows or columns of a database are known.
func (x *Index) InPart() bool { return x != nil && (x.whole != nil || len(x.known) > 0) }

// Known returns what is known of a table; part is false for one that is known as a whole, or not at all.
func (x *Index) Known(table string) (known KnownTable, part bool) {
	if x != nil {
		known, part = x.known[table]
	}
	return known, part
}
