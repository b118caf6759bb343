package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Content is what the records of a database file add up to, for those who read
// a database that no server serves. What no file keeps (statistics, link states)
// is not in it.
type Content struct {
	Info   Info
	tables map[string]map[string]columns
}

// Read reads some tables of the database file src, of either form and perhaps
// gzip'd, into memory; without any named, all. Files are mended as by
// Standalone, and the remarks say the same. It needs room for a copy beside src.
func Read(ctx context.Context, src string, tables ...string) (*Content, []string, error) {
	out, err := newOutput(src)
	if err != nil {
		return nil, nil, err
	}
	defer out.discard(false)
	info, remarks, err := transcribe(ctx, src, out)
	if err != nil {
		return nil, remarks, err
	}
	db, _, err := addUp(ctx, out, nil, tables...)
	if err != nil {
		return nil, remarks, fmt.Errorf("%s: %w", src, err)
	}
	return &Content{Info: info, tables: db.tables}, remarks, nil
}

// addUp applies the records of a standalone file, without the rows that lost
// records named (see rebuild), and tells where its schema ends. Only the tables
// that are named are kept; without any named, all.
func addUp(ctx context.Context, out *output, lost map[string]int64, tables ...string) (db *database, end int64, err error) {
	if err := out.buf.Flush(); err != nil {
		return nil, 0, fmt.Errorf("writing %s: %w", out.file.Name(), err)
	}
	section := io.NewSectionReader(out.file, 0, out.offset)
	scan := newScanner(section)
	if _, err := scan.skip(); err != nil {
		return nil, 0, err
	}
	schema, err := scan.next()
	if err != nil {
		return nil, 0, err
	}
	end = int64(len(schema.header)) + schema.size
	if db, err = newDatabase(schema.body); err != nil {
		return nil, 0, fmt.Errorf("%w: record 1: %w", ErrSchema, err)
	}
	db.lost = lost
	if len(tables) > 0 {
		maps.DeleteFunc(db.tables, func(name string, _ map[string]columns) bool { return !slices.Contains(tables, name) })
		scan.file, scan.onward = section, &picker{want: func(key string) bool { return key == isDiff || db.tables[key] != nil }}
	}
	return db, end, db.applyAll(ctx, scan)
}

// Rows returns the rows of a table, by UUID; none of a table that the schema
// doesn't know. A value that is none of RFC 7047's is left out.
func (c *Content) Rows(table string) []Row {
	rows := make([]Row, 0, len(c.tables[table]))
	for _, uuid := range slices.Sorted(maps.Keys(c.tables[table])) {
		row := Row{UUID: uuid, columns: rfc.Row{}}
		for column, text := range c.tables[table][uuid] {
			var one rfc.Row
			if json.Unmarshal(slices.Concat([]byte(`{"v":`), text, []byte(`}`)), &one) == nil {
				row.columns[column] = one["v"]
			}
		}
		rows = append(rows, row)
	}
	return rows
}
