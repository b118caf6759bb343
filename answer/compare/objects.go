package compare

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
)

// object is a row of a database that users know.
type object struct {
	table string
	row   ovsdb.Row
	owner *object // the row that it is a part of; nil for a row of its own
	// shared reports that several rows of the owner's table have it as a part.
	shared bool
	parts  []*object
	name   string // as users know it, with its kind
	// state holds values from other sources, as further columns.
	state map[string]string
}

// database is the content of one database of one side.
type database struct {
	index   *file.Index
	tables  map[string]table
	columns map[string][]file.Column
	objects map[string]*object // by UUID
	byTable map[string][]*object
	names   ovsdb.Names
}

// readDatabase reads the objects of a database. naming names a row, "" for a row that is
// named by its key.
func readDatabase(index *file.Index, known map[string]table, naming func(table string, row ovsdb.Row) string) (*database, error) {
	db := &database{index: index, tables: known, columns: map[string][]file.Column{}, objects: map[string]*object{}, byTable: map[string][]*object{}, names: ovsdb.Names{}}
	for _, name := range index.Tables() {
		if db.tables[name].skipped {
			continue
		}
		db.columns[name] = index.Columns(name)
		for row, err := range index.Rows(name) {
			if err != nil {
				return nil, err
			}
			o := &object{table: name, row: row}
			db.objects[row.UUID] = o
			db.byTable[name] = append(db.byTable[name], o)
		}
	}
	db.findOwners()
	for name, list := range db.byTable {
		for _, o := range list {
			db.name(name, o, naming)
		}
	}
	for _, o := range db.objects {
		slices.SortFunc(o.parts, func(a, b *object) int {
			return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.row.UUID, b.row.UUID))
		})
	}
	return db, nil
}

// findOwners finds the row that each row is a part of, the first if there are several.
func (db *database) findOwners() {
	for _, table := range db.index.Tables() {
		for _, column := range db.columns[table] {
			if column.Owns == "" {
				continue
			}
			for _, object := range db.byTable[table] {
				for _, id := range object.row.References()[column.Name] {
					part := db.objects[id]
					if part == nil || part == object {
						continue
					}
					if part.owner != nil {
						part.shared = part.shared || part.owner != object
						continue
					}
					part.owner = object
					object.parts = append(object.parts, part)
				}
			}
		}
	}
}

// name gives an object its name, and the name by which other rows refer to it.
func (db *database) name(table string, object *object, naming func(string, ovsdb.Row) string) {
	known := db.tables[table]
	if known.inline != nil {
		object.name = known.inline(object.row)
		db.names[object.row.UUID] = object.name
		return
	}
	if object.name = naming(table, object.row); object.name == "" {
		object.name = strings.TrimSpace(db.kind(object) + " " + db.keyText(table, object))
	}
	db.names[object.row.UUID] = cmp.Or(object.row.String("name"), object.name)
}

// keyColumns returns the columns by which the rows of a table are told apart.
func (db *database) keyColumns(table string) []string {
	if known := db.tables[table]; len(known.key) > 0 {
		return known.key
	}
	var usable []string
	for _, column := range db.index.Identity(table) {
		if len(db.columnsNamed(table, column)) > 0 {
			usable = append(usable, column)
		}
	}
	if len(usable) > 0 {
		return usable
	}
	return []string{"name"}
}

func (db *database) columnsNamed(table, name string) []file.Column {
	return slices.Collect(func(yield func(file.Column) bool) {
		for _, c := range db.columns[table] {
			if c.Name == name && !yield(c) {
				return
			}
		}
	})
}

// keyText returns the values of the key of an object.
func (db *database) keyText(table string, o *object) string {
	return words(db.keyColumns(table)...)(o.row)
}

// kind returns what users call an object.
func (db *database) kind(o *object) string {
	return cmp.Or(db.tables[o.table].kind, rules.Kind(o.table))
}

// northNames names northbound rows.
func northNames(named *rules.Rules) func(string, ovsdb.Row) string {
	return func(table string, row ovsdb.Row) string {
		switch table {
		case "NB_Global":
			return "settings of OVN"
		case "ACL":
			return named.Name(table, row) + ", " + row.String("direction") + ": " + row.String("match")
		case "Logical_Switch", "Logical_Router", "Logical_Switch_Port", "Logical_Router_Port", "NAT", "Load_Balancer", "Logical_Router_Static_Route", "Logical_Router_Policy", "QoS", "DHCP_Options", "Port_Group", "Address_Set":
			return named.Name(table, row)
		}
		return ""
	}
}
