package file

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/internal/ovsdb"
)

// Content is the content of a database file in memory. It lacks ephemeral columns
// (statistics, link states), which no file holds.
type Content struct {
	Info    Info
	Changed time.Time // of the last transaction; zero if no record has a time
	tables  map[string]map[string]columns
}

// Read reads the named tables of the database file src, or all tables if none is named.
// It repairs the data as Standalone does, with the same remarks, and needs space for a
// copy.
func Read(ctx context.Context, src string, tables ...string) (*Content, []string, error) {
	unnamed, err := unnamedFile(filepath.Dir(src)) // a killed program leaves no part of a copy among collected data
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", src, err)
	}
	defer unnamed.Close()
	out := outputTo(unnamed)
	info, remarks, err := convert(ctx, src, out)
	if err != nil {
		return nil, remarks, err
	}
	db, _, err := load(ctx, out, nil, tables...)
	if err != nil {
		return nil, remarks, fmt.Errorf("%s: %w", src, err)
	}
	return &Content{Info: info, Changed: db.changed, tables: db.tables}, remarks, nil
}

// Rows returns the rows of a table in order of their UUIDs.
func (c *Content) Rows(table string) []ovsdb.Row {
	rows := make([]ovsdb.Row, 0, len(c.tables[table]))
	for _, uuid := range c.UUIDs(table) {
		rows = append(rows, ovsdb.ParseRow(uuid, c.tables[table][uuid]))
	}
	return rows
}

// UUIDs returns the UUIDs of the rows of a table, sorted. Unlike Rows it parses no row.
func (c *Content) UUIDs(table string) []string {
	return slices.Sorted(maps.Keys(c.tables[table]))
}

// load applies the records of a standalone file, and returns the offset of the end of
// the schema. It loads only the named tables, or all tables if none is named. Changes
// of rows that a lost record inserted are left out (see rebuild).
func load(ctx context.Context, out *output, lost map[string]int64, tables ...string) (db *database, end int64, err error) {
	if err := out.buf.Flush(); err != nil {
		return nil, 0, err
	}
	section := io.NewSectionReader(out.file, 0, out.offset)
	scan := newScanner(ctx, section)
	if _, _, err := scan.until(0); err != nil {
		return nil, 0, err
	}
	schema, err := scan.next()
	if err != nil {
		return nil, 0, err
	}
	end = int64(len(schema.line)) + schema.size
	if db, err = newDatabase(schema.body); err != nil {
		return nil, 0, fmt.Errorf("%w: record 1: %w", ErrSchema, err)
	}
	db.lost = lost
	if len(tables) > 0 {
		maps.DeleteFunc(db.tables, func(name string, _ map[string]columns) bool { return !slices.Contains(tables, name) })
		scan.file, scan.want = section, func(key string) bool { return key == isDiff || key == date || db.tables[key] != nil }
	}
	return db, end, db.applyAll(scan)
}
