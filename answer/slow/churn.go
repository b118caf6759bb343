package slow

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/pkg/ovsdb/file"
)

// Churn is which rows of a database change how often, as its transactions show.
type Churn struct {
	Database     string       `json:"database"` // with the node, for the OVS database of one of several
	Transactions int          `json:"transactions"`
	From         time.Time    `json:"from,omitzero"`
	To           time.Time    `json:"to,omitzero"`
	Tables       []TableChurn `json:"tables"` // the one with the most changes first
	Rows         []RowChurn   `json:"rows"`

	remarks []string
	lost    bool
}

// TableChurn is the changes of the rows of a table.
type TableChurn struct {
	Table    string `json:"table"`
	Changes  int    `json:"changes"`
	Inserted int    `json:"inserted"`
	Deleted  int    `json:"deleted"`
}

// RowChurn is the changes of a row, or of rows that had the same name one after the other.
type RowChurn struct {
	Table    string    `json:"table"`
	Row      string    `json:"row"` // its name, or else its UUID
	Changes  int       `json:"changes"`
	Inserted int       `json:"inserted,omitempty"`
	Deleted  int       `json:"deleted,omitempty"`
	Columns  []string  `json:"columns,omitempty"` // that changed, the most often first
	Every    float64   `json:"every,omitempty"`   // seconds between changes, on average
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Program  string    `json:"program,omitempty"` // which made the last change, if that is known

	notable int  // changes of columns that no daemon counts in
	several bool // rows had this name at the same time
	columns map[string]int
}

// rowKey identifies a row by its name, so that rows that are made again and again are one.
type rowKey struct{ table, row string }

// leastChanges is the number of changes from which a row is listed.
const leastChanges = 3

// readChurn counts the changes of the rows of a database; nil if no file of it was collected.
func readChurn(ctx context.Context, source history.Source) (*Churn, error) {
	if source.File == "" {
		return nil, nil
	}
	source.Logs = nil
	churn := &Churn{Database: history.DatabaseName(source.Node, source.Title), Tables: []TableChurn{}, Rows: []RowChurn{}}
	tables := map[string]*TableChurn{}
	var rows often[rowKey, RowChurn]
	results, err := history.Read(ctx, []history.Source{source}, history.Query{Brief: true}, func(event *history.Event) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if event.Base {
			return nil
		}
		churn.addEvent(event)
		for i := range event.Rows {
			row := &event.Rows[i]
			if tables[row.Table] == nil {
				tables[row.Table] = &TableChurn{Table: row.Table}
			}
			tables[row.Table].add(row)
			key := rowKey{row.Table, cmp.Or(row.Name, row.UUID)}
			rows.add(key).value.add(key, event, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		churn.remarks, churn.lost = append(churn.remarks, r.Remarks...), churn.lost || r.Lost
	}
	churn.list(tables, &rows)
	return churn, nil
}

func (c *Churn) addEvent(event *history.Event) {
	c.Transactions++
	if event.Time.IsZero() {
		return
	}
	if c.From.IsZero() {
		c.From = event.Time
	}
	c.To = event.Time
}

func (t *TableChurn) add(row *history.Row) {
	t.Changes++
	switch row.Change {
	case file.Inserted:
		t.Inserted++
	case file.Deleted:
		t.Deleted++
	}
}

func (r *RowChurn) add(key rowKey, event *history.Event, row *history.Row) {
	r.Table, r.Row, r.Changes, r.Last = key.table, key.row, r.Changes+1, event.Time
	if r.First.IsZero() {
		r.First = event.Time
	}
	r.Program = cmp.Or(event.Program, r.Program)
	switch row.Change {
	case file.Inserted:
		r.Inserted++
		r.several = r.several || r.Inserted > r.Deleted+1
	case file.Deleted:
		r.Deleted++
	default:
		notable := false
		for name, column := range row.Columns {
			notable = notable || !isBookkeeping(name, column)
			r.addColumn(name)
		}
		if notable {
			r.notable++
		}
	}
}

// maxColumns bounds the columns that are counted of a row.
const maxColumns = 16

func (r *RowChurn) addColumn(name string) {
	if r.columns == nil {
		r.columns = map[string]int{}
	}
	if _, known := r.columns[name]; known || len(r.columns) < maxColumns {
		r.columns[name]++
	}
}

// isBookkeeping reports whether a change of a column only says that a daemon is alive, or how far it is.
func isBookkeeping(name string, column history.Column) bool {
	switch name {
	case "nb_cfg", "sb_cfg", "hv_cfg", "nb_cfg_timestamp", "sb_cfg_timestamp", "hv_cfg_timestamp", "cur_cfg", "next_cfg", "timestamp", "idle_age":
		return true
	case "external_ids", "other_config", "options":
		for _, pair := range slices.Concat(column.Added, column.Removed) {
			if key, _, _ := strings.Cut(pair, "="); !strings.Contains(key, "nb-cfg") && !strings.Contains(key, "nb_cfg") && !strings.Contains(key, "timestamp") && !strings.Contains(key, "e2e_timestamp") {
				return false
			}
		}
		return len(column.Added)+len(column.Removed) > 0
	}
	return false
}

// list makes the lists of tables and rows.
func (c *Churn) list(tables map[string]*TableChurn, rows *often[rowKey, RowChurn]) {
	for _, t := range tables {
		c.Tables = append(c.Tables, *t)
	}
	slices.SortFunc(c.Tables, func(a, b TableChurn) int {
		return cmp.Or(b.Changes-a.Changes, strings.Compare(a.Table, b.Table))
	})
	for _, counted := range rows.kept {
		if r := counted.value; r.Changes >= leastChanges {
			c.Rows = append(c.Rows, r)
		}
	}
	slices.SortFunc(c.Rows, func(a, b RowChurn) int {
		return cmp.Or(b.Changes-a.Changes, strings.Compare(a.Table, b.Table), strings.Compare(a.Row, b.Row))
	})
	for i := range c.Rows {
		c.Rows[i].finish()
	}
}

// finish computes the period and sorts the columns.
func (r *RowChurn) finish() {
	if between := r.Last.Sub(r.First); r.Changes > 1 && between > 0 {
		r.Every = between.Seconds() / float64(r.Changes-1)
	}
	for name := range r.columns {
		r.Columns = append(r.Columns, name)
	}
	slices.SortFunc(r.Columns, func(a, b string) int {
		return cmp.Or(r.columns[b]-r.columns[a], strings.Compare(a, b))
	})
}
