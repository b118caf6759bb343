package replica

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

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

// Diff compares the database as recorded with the one that the replica's
// ovs-vswitchd works on: statistics and link states, which a replica has of its
// own, errors, port numbers, and what was changed to make it safe and faithful.
// Rows are told apart by name where they have one.
func Diff(ctx context.Context, wd *workdir.Dir) ([]Difference, error) {
	if _, err := ReadState(wd); err != nil {
		return nil, err
	}
	if _, err := os.Stat(wd.RecordedSocket()); err != nil {
		return nil, fmt.Errorf("the database as recorded is not served in %s: either no OVS database was collected, or the report says why (ovs-offline report)", wd.Path())
	}
	recorded, err := readAll(ctx, wd.RecordedSocket())
	if err != nil {
		return nil, err
	}
	running, err := readAll(ctx, wd.Socket(workdir.OVS))
	if err != nil {
		return nil, err
	}
	return compare(recorded, running), nil
}

// allRows are the rows of a database by table and by what they are called.
type allRows struct {
	rows  map[string]map[string]ovsdb.Row
	names ovsdb.Names
}

func readAll(ctx context.Context, socket string) (allRows, error) {
	all := allRows{rows: map[string]map[string]ovsdb.Row{}, names: ovsdb.Names{}}
	db, err := ovsdb.Connect(ctx, socket, ovsdb.OVS)
	if err != nil {
		return all, err
	}
	defer db.Close()
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
