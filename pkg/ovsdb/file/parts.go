package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// Part is a part of the content of a database: a row, a column of one, or an element of a set or a map.
type Part struct {
	Table, UUID string
	Column      string // "" for the row
	Element     string // the JSON text of the element, of a map its key; "" for the column
}

// Whole is the content of a standalone database file, of which files that lack some parts can be written.
type Whole struct {
	schema []byte
	rows   map[string]map[string]columns
}

// ReadWhole reads the database file at path, which must be without damage, as Standalone writes it.
func ReadWhole(ctx context.Context, path string) (*Whole, error) {
	from, err := openSource(ctx, nil, path)
	if err != nil {
		return nil, err
	}
	defer from.close()
	first, err := from.next()
	if err != nil || from.info.Form != FormStandalone {
		return nil, fmt.Errorf("%s is no standalone database: %w", path, cmp.Or(err, ErrNotDatabase))
	}
	whole := &Whole{schema: bytes.Clone(first.body)}
	db, err := newDatabase(whole.schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for {
		record, err := from.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		db.apply(record.body, record.offset)
	}
	db.composeSets()
	whole.rows = db.tables
	return whole, nil
}

// Rows returns the rows of a table, or of all tables for "", in the order of tables and UUIDs.
func (w *Whole) Rows(table string) (list []Part) {
	for name, rows := range w.rows {
		if table != "" && name != table {
			continue
		}
		for uuid := range rows {
			list = append(list, Part{Table: name, UUID: uuid})
		}
	}
	slices.SortFunc(list, comparePart)
	return list
}

func comparePart(a, b Part) int {
	return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.UUID, b.UUID), strings.Compare(a.Column, b.Column), strings.Compare(a.Element, b.Element))
}

// Columns returns the columns of a row that hold something, in their order.
func (w *Whole) Columns(row Part) (list []Part) {
	for column, text := range w.rows[row.Table][row.UUID] {
		if elements := parseElements(text, strings.HasPrefix(string(text), `["map"`)); len(elements) > 0 && string(text) != `""` {
			list = append(list, Part{Table: row.Table, UUID: row.UUID, Column: column})
		}
	}
	slices.SortFunc(list, comparePart)
	return list
}

// Elements returns the elements of a column that holds several, in their order.
func (w *Whole) Elements(column Part) (list []Part) {
	text := w.rows[column.Table][column.UUID][column.Column]
	elements := parseElements(text, strings.HasPrefix(string(text), `["map"`))
	if len(elements) < 2 {
		return nil
	}
	for _, element := range elements {
		list = append(list, Part{column.Table, column.UUID, column.Column, element.key})
	}
	slices.SortFunc(list, comparePart)
	return list
}

// Text returns the JSON text of a column.
func (w *Whole) Text(column Part) string {
	return string(w.rows[column.Table][column.UUID][column.Column])
}

// Row returns a row.
func (w *Whole) Row(part Part) ovsdb.Row {
	return ovsdb.ParseRow(part.UUID, w.rows[part.Table][part.UUID])
}

// Each calls use for each row that Rows lists, which has all columns.
func (w *Whole) Each(table string, use func(ovsdb.Row), _ ...string) error {
	for _, part := range w.Rows(table) {
		use(w.Row(part))
	}
	return nil
}

// Name returns the name of a row, "" for one without.
func (w *Whole) Name(row Part) string { return w.Row(row).String("name") }

// RefersTo reports whether a row refers to one of some rows, by their UUIDs.
func (w *Whole) RefersTo(row Part, uuids map[string]bool) bool {
	for _, list := range w.Row(row).References() {
		if slices.ContainsFunc(list, func(uuid string) bool { return uuids[uuid] }) {
			return true
		}
	}
	return false
}

// Has reports whether the content has a part.
func (w *Whole) Has(part Part) bool {
	row, ok := w.rows[part.Table][part.UUID]
	if !ok || part.Column == "" {
		return ok
	}
	text, ok := row[part.Column]
	if !ok || part.Element == "" {
		return ok
	}
	return slices.ContainsFunc(parseElements(text, strings.HasPrefix(string(text), `["map"`)), func(e element) bool { return e.key == part.Element })
}

// Without returns the content without some parts, without the rows that need one of them, and without rows to which
// nothing refers any more, as ovsdb-server removes them (RFC 7047, 3.2, isRoot).
func (w *Whole) Without(ctx context.Context, removed map[Part]bool) (*Whole, error) {
	db, err := newDatabase(w.schema)
	if err != nil {
		return nil, err
	}
	for table, rows := range w.rows {
		for uuid, row := range rows {
			if !removed[Part{Table: table, UUID: uuid}] {
				db.tables[table][uuid] = lacking(table, uuid, row, removed)
			}
		}
	}
	for {
		if err := db.reconcile(ctx); err != nil {
			return nil, err
		}
		if db.removeUnreferenced() == 0 {
			return &Whole{w.schema, db.tables}, nil
		}
	}
}

// lacking returns the columns of a row without some parts.
func lacking(table, uuid string, row columns, removed map[Part]bool) columns {
	left := columns{}
	for column, text := range row {
		part := Part{Table: table, UUID: uuid, Column: column}
		if removed[part] {
			continue
		}
		isMap := strings.HasPrefix(string(text), `["map"`)
		elements := parseElements(text, isMap)
		kept := slices.DeleteFunc(slices.Clone(elements), func(e element) bool {
			part.Element = e.key
			return removed[part]
		})
		if len(kept) < len(elements) {
			text = composeElements(kept, isMap)
		}
		left[column] = text
	}
	return left
}

// removeUnreferenced removes the rows of tables without isRoot to which no row has a strong reference, and returns how
// many these are.
func (db *database) removeUnreferenced() (removed int) {
	wanted := map[string]bool{}
	for table, rows := range db.tables {
		for column, schema := range db.schema[table].Columns {
			for _, row := range rows {
				for _, e := range parseElements(row[column], schema.Type.isMap()) {
					for kind, atom := range map[*baseType]string{&schema.Type.Key: e.key, &schema.Type.Value: e.value} {
						var pair []string
						if kind.RefTable != "" && kind.RefType != "weak" && json.Unmarshal([]byte(atom), &pair) == nil && len(pair) == 2 {
							wanted[pair[1]] = true
						}
					}
				}
			}
		}
	}
	for table, rows := range db.tables {
		if db.schema[table].Root {
			continue
		}
		before := len(rows)
		maps.DeleteFunc(rows, func(uuid string, _ columns) bool { return !wanted[uuid] })
		removed += before - len(rows)
	}
	return removed
}

// Write writes a standalone database file with the content.
func (w *Whole) Write(dst string) error {
	db := &database{tables: maps.Clone(w.rows)}
	return writeFile(dst, func(out *output) error {
		if err := out.addSchema(w.schema); err != nil {
			return err
		}
		return db.write(out, "")
	})
}
