package replica

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// Difference is what the OVS database of the node said and the one of the running
// replica says otherwise. Column is "" where a whole row is in one of them alone;
// of a column that holds several, only what differs is given.
type Difference struct {
	Table    string `json:"table"`
	Record   string `json:"record"`
	Column   string `json:"column,omitempty"`
	Recorded string `json:"recorded"`
	Running  string `json:"running"`
}

// Selection is what of the differences is asked for: of records by name, in
// columns; all where there are none.
type Selection struct{ Records, Columns []string }

func (s Selection) leavesOut(d Difference) bool {
	return len(s.Records) > 0 && !slices.Contains(s.Records, d.Record) || len(s.Columns) > 0 && !slices.Contains(s.Columns, d.Column)
}

// check returns an error for what is in none of the databases: a name that was
// mistyped says nothing of a port.
func (s Selection) check(databases ...allRows) error {
	var missing []string
	for _, name := range s.Records {
		if !slices.ContainsFunc(databases, func(all allRows) bool { return all.has(name) }) {
			missing = append(missing, fmt.Sprintf("record %q", name))
		}
	}
	for _, name := range s.Columns {
		if !slices.ContainsFunc(databases, func(all allRows) bool { return slices.Contains(all.columns, name) }) {
			missing = append(missing, fmt.Sprintf("column %q", name))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("neither the OVS database of the node nor the running one has %s", strings.Join(missing, ", "))
	}
	return nil
}

// Diff compares the database as recorded with the one that the replica's
// ovs-vswitchd works on: statistics and link states, which a replica has of its
// own, errors, port numbers, and what was changed to make it safe and faithful.
// Rows are told apart by name where they have one.
func Diff(ctx context.Context, wd *workdir.Dir, wanted Selection) ([]Difference, error) {
	if _, err := ReadState(wd); err != nil {
		return nil, err
	}
	if _, err := os.Stat(wd.RecordedSocket()); err != nil {
		return nil, fmt.Errorf("the database as recorded is not served in %s: either no OVS database was collected, or the report says why (ovs-offline report)", wd.Path())
	}
	recorded, err := readAll(ctx, wd.RecordedSocket(), wanted.Columns)
	if err != nil {
		return nil, err
	}
	running, err := readAll(ctx, wd.Socket(workdir.OVS), wanted.Columns)
	if err != nil {
		return nil, err
	}
	if err := wanted.check(recorded, running); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(compare(recorded, running), wanted.leavesOut), nil
}

// allRows are the rows of a database by table and by what they are called.
type allRows struct {
	rows    map[string]map[string]ovsdb.Row
	names   ovsdb.Names
	columns []string // of those asked for, the ones that its schema knows
}

func (all allRows) has(name string) bool {
	for _, rows := range all.rows {
		if _, ok := rows[name]; ok {
			return true
		}
	}
	return false
}

func readAll(ctx context.Context, socket string, columns []string) (allRows, error) {
	all := allRows{rows: map[string]map[string]ovsdb.Row{}, names: ovsdb.Names{}}
	db, err := ovsdb.Connect(ctx, socket, ovsdb.OVS)
	if err != nil {
		return all, err
	}
	defer db.Close()
	for _, column := range columns {
		if slices.ContainsFunc(db.Tables(), func(table string) bool { return db.HasColumn(table, column) }) {
			all.columns = append(all.columns, column)
		}
	}
	for _, table := range db.Tables() {
		rows, err := db.SelectAll(ctx, table)
		if err != nil {
			return all, err
		}
		all.rows[table] = map[string]ovsdb.Row{}
		for _, row := range rows {
			name := row.String("name")
			if table == ovsdb.OVS {
				name = "." // as ovs-vsctl calls the only row
			}
			if name != "" {
				all.names[row.UUID] = name
			}
			all.rows[table][cmp.Or(name, row.UUID)] = row
		}
	}
	return all, nil
}

func compare(recorded, running allRows) []Difference {
	var found []Difference
	for table, rows := range recorded.rows {
		for name, row := range rows {
			now, ok := running.rows[table][name]
			if !ok {
				found = append(found, Difference{Table: table, Record: name, Recorded: "there", Running: "not there"})
				continue
			}
			for _, column := range row.Columns() {
				was, is := ovsdb.Compare(row, now, column, recorded.names, running.names)
				if was != is && column != "_version" {
					found = append(found, Difference{table, name, column, was, is})
				}
			}
		}
	}
	for table, rows := range running.rows {
		for name := range rows {
			if _, ok := recorded.rows[table][name]; !ok {
				found = append(found, Difference{Table: table, Record: name, Recorded: "not there", Running: "there"})
			}
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Record, b.Record), cmp.Compare(a.Column, b.Column))
	})
	return found
}
