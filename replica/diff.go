package replica

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// Difference is a difference between the OVS database as recorded and the one of
// the running replica. Column is "" for a row that one of them lacks. Of a set or
// map, only the differing elements are given.
type Difference struct {
	Table    string `json:"table"`
	Record   string `json:"record"`
	Column   string `json:"column,omitempty"`
	Recorded string `json:"recorded"`
	Running  string `json:"running"`
}

// Selection selects differences by the names of records and of columns; an empty
// list selects all.
type Selection struct{ Records, Columns []string }

func (s Selection) excludes(difference Difference) bool {
	return len(s.Records) > 0 && !slices.Contains(s.Records, difference.Record) || len(s.Columns) > 0 && !slices.Contains(s.Columns, difference.Column)
}

// check returns an error for names that no database has: they are probably mistyped.
func (s Selection) check(databases ...database) error {
	var missing []string
	for _, name := range s.Records {
		if !slices.ContainsFunc(databases, func(db database) bool { return db.hasTable(name) }) {
			missing = append(missing, fmt.Sprintf("record %q", name))
		}
	}
	for _, name := range s.Columns {
		if !slices.ContainsFunc(databases, func(db database) bool { return slices.Contains(db.columns, name) }) {
			missing = append(missing, fmt.Sprintf("column %q", name))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("neither the OVS database of the node nor the running one has %s", strings.Join(missing, ", "))
	}
	return nil
}

// Comparison holds the differences between the database as recorded and the one
// of the running replica.
type Comparison struct {
	Differences []Difference
	// Own names the columns that differ as well, in rows of any table, because
	// start changed them or they describe this machine's ports.
	Own []string
}

// Diff compares the database as recorded with the one that the replica's
// ovs-vswitchd works on, without statistics, states, errors and port numbers. It compares
// columns that the replica sets itself only where wanted names them. Rows are matched by name where they have one, else by UUID.
func Diff(ctx context.Context, wd *workdir.Dir, wanted Selection) (Comparison, error) {
	state, err := ReadState(wd)
	if err != nil {
		return Comparison{}, err
	}
	recorded, running, err := readBoth(ctx, wd, wanted)
	if err != nil {
		return Comparison{}, err
	}
	found := Comparison{Differences: slices.DeleteFunc(compare(recorded, running), wanted.excludes)}
	if len(wanted.Columns) > 0 {
		return found, nil
	}
	found.Differences = slices.DeleteFunc(found.Differences, func(difference Difference) bool {
		own := slices.Contains(state.Changed[difference.Table], difference.Column) || slices.Contains(machineColumns()[difference.Table], difference.Column)
		if own {
			found.Own = append(found.Own, difference.Column)
		}
		return own
	})
	slices.Sort(found.Own)
	found.Own = slices.Compact(found.Own)
	return found, nil
}

// machineColumns returns the columns, by table, in which ovs-vswitchd describes the
// machine that it runs on: its own devices, datapath and abilities.
func machineColumns() map[string][]string {
	return map[string][]string{
		"Bridge":       {"datapath_version"},
		"Datapath":     {"capabilities", "datapath_version"},
		"Interface":    {"duplex", "ifindex", "link_speed", "mac_in_use"},
		"Open_vSwitch": {"cur_cfg", "datapath_types", "iface_types"},
	}
}

// readBoth reads the database as recorded and the running one.
func readBoth(ctx context.Context, wd *workdir.Dir, wanted Selection) (recorded, running database, err error) {
	if _, err := os.Stat(wd.RecordedSocket()); err != nil {
		return recorded, running, fmt.Errorf("the database as recorded is not served in %s: either no OVS database was collected, or the report gives the reason (ovs-offline report)", wd.Path())
	}
	if recorded, err = readDatabase(ctx, wd.RecordedSocket(), wanted.Columns); err != nil {
		return recorded, running, err
	}
	if running, err = readDatabase(ctx, wd.Socket(workdir.OVS), wanted.Columns); err != nil {
		return recorded, running, err
	}
	return recorded, running, wanted.check(recorded, running)
}

// database is the content of a database.
type database struct {
	rows    map[string]map[string]ovsdb.Row // by table, and by name or UUID
	names   ovsdb.Names
	columns []string // the selected columns that its schema has
}

func (db database) hasTable(name string) bool {
	for _, rows := range db.rows {
		if _, ok := rows[name]; ok {
			return true
		}
	}
	return false
}

func readDatabase(ctx context.Context, socket string, columns []string) (database, error) {
	db := database{rows: map[string]map[string]ovsdb.Row{}, names: ovsdb.Names{}}
	client, err := ovsdb.Connect(ctx, socket, ovsdb.OVS)
	if err != nil {
		return db, err
	}
	defer client.Close()
	for _, column := range columns {
		if slices.ContainsFunc(client.Tables(), func(table string) bool { return client.HasColumn(table, column) }) {
			db.columns = append(db.columns, column)
		}
	}
	for _, table := range client.Tables() {
		rows, err := client.Select(ctx, table)
		if err != nil {
			return db, err
		}
		db.rows[table] = map[string]ovsdb.Row{}
		for _, row := range rows {
			name := row.String("name")
			if table == ovsdb.OVS {
				name = "." // the name that ovs-vsctl gives the only row
			}
			if name != "" {
				db.names[row.UUID] = name
			}
			db.rows[table][cmp.Or(name, row.UUID)] = row
		}
	}
	return db, nil
}

func compare(recorded, running database) []Difference {
	var found []Difference
	for table, rows := range recorded.rows {
		for name, row := range rows {
			other, ok := running.rows[table][name]
			if !ok {
				found = append(found, Difference{Table: table, Record: name, Recorded: "present", Running: "absent"})
				continue
			}
			for _, column := range row.Columns() {
				a, b := ovsdb.Compare(row, other, column, recorded.names, running.names)
				if a != b && column != "_version" {
					found = append(found, Difference{table, name, column, a, b})
				}
			}
		}
	}
	for table, rows := range running.rows {
		for name := range rows {
			if _, ok := recorded.rows[table][name]; !ok {
				found = append(found, Difference{Table: table, Record: name, Recorded: "absent", Running: "present"})
			}
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Record, b.Record), cmp.Compare(a.Column, b.Column))
	})
	return found
}
