package ovsdb

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// StoredRow is one row of a database file, each column as the JSON of RFC 7047, 5.1.
type StoredRow map[string]json.RawMessage

// String returns a column of one string, "" where it is none.
func (r StoredRow) String(column string) string {
	var text string
	if json.Unmarshal(r[column], &text) != nil {
		return ""
	}
	return text
}

// Map returns a column that maps strings to strings.
func (r StoredRow) Map(column string) map[string]string {
	m := map[string]string{}
	for _, e := range elements(r[column], true) {
		var key, value string
		if json.Unmarshal([]byte(e.key), &key) == nil && json.Unmarshal([]byte(e.value), &value) == nil {
			m[key] = value
		}
	}
	return m
}

// Rows reads some tables of a database file of either form, as a server of it
// would tell them. It needs room for a copy beside the file. Memory use is that
// of the longest record and of the tables asked for.
func Rows(ctx context.Context, path string, tables ...string) (map[string][]StoredRow, error) {
	whole, err := os.CreateTemp(filepath.Dir(path), "rows-*")
	if err != nil {
		return nil, err
	}
	whole.Close()
	defer os.Remove(whole.Name())
	if _, _, err := Standalone(ctx, path, whole.Name()); err != nil {
		return nil, err
	}
	in, err := os.Open(whole.Name())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	scan := newScanner(in)
	if _, err := scan.skip(); err != nil {
		return nil, err
	}
	schema, err := scan.next()
	if err != nil {
		return nil, err
	}
	db, err := newDatabase(schema.body)
	if err != nil {
		return nil, err
	}
	for name := range db.tables {
		if !slices.Contains(tables, name) {
			delete(db.tables, name)
		}
	}
	if err := db.applyAll(ctx, scan); err != nil {
		return nil, err
	}
	rows := map[string][]StoredRow{}
	for name, table := range db.tables {
		for _, columns := range table {
			rows[name] = append(rows[name], StoredRow(columns))
		}
	}
	return rows, nil
}
