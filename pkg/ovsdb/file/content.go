package file

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ovs-offline/pkg/ovsdb"
)

// Content holds the rows of some tables of a database file in memory. It lacks ephemeral
// columns (statistics, link states), which no file holds.
type Content struct {
	Info    Info
	Changed time.Time // of the last transaction; zero if no record has a time
	rows    map[string][]ovsdb.Row
}

// Read reads the named tables of the database file src, or all tables if none is named. It
// repairs the data as OpenIndex does, and returns the remarks of the index.
func Read(ctx context.Context, src string, tables ...string) (*Content, []string, error) {
	index, err := OpenIndex(ctx, src, tables...)
	if err != nil {
		return nil, nil, err
	}
	defer index.Close()
	content, err := index.Content(tables...)
	return content, index.Remarks, err
}

// Content returns the rows of the named tables, or of all tables that the index has if none is named.
func (x *Index) Content(tables ...string) (*Content, error) {
	content := &Content{Info: x.Info, Changed: x.Changed, rows: map[string][]ovsdb.Row{}}
	for table := range x.tables {
		if len(tables) > 0 && !slices.Contains(tables, table) {
			continue
		}
		for row, err := range x.Rows(table) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.Path, err)
			}
			content.rows[table] = append(content.rows[table], row)
		}
	}
	return content, nil
}

// Rows returns the rows of a table in order of their UUIDs. The names of printed tables may have any
// case, as people type them.
func (c *Content) Rows(table string) []ovsdb.Row {
	if rows, exact := c.rows[table]; exact || c.Info.Form != FormPrinted {
		return rows
	}
	for spelled, rows := range c.rows {
		if strings.EqualFold(spelled, table) {
			return rows
		}
	}
	return nil
}

// Each calls use for each row that Rows returns, which has all columns.
func (c *Content) Each(table string, use func(ovsdb.Row), _ ...string) error {
	for _, row := range c.Rows(table) {
		use(row)
	}
	return nil
}

// UUIDs returns the UUIDs of the rows of a table, sorted.
func (c *Content) UUIDs(table string) []string {
	var uuids []string
	for _, row := range c.Rows(table) {
		uuids = append(uuids, row.UUID)
	}
	return uuids
}

// load applies the records of a standalone file, and returns the offset of the end of
// the schema. Changes of rows that a lost record inserted are left out, and, if strict, what
// ovsdb-server would refuse (see rebuild).
func load(ctx context.Context, out *output, lost map[string]int64, strict bool) (db *database, end int64, err error) {
	if err := out.buf.Flush(); err != nil {
		return nil, 0, err
	}
	scan := newScanner(ctx, io.NewSectionReader(out.file, 0, out.offset))
	if _, _, err := scan.readToHeader(0); err != nil {
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
	db.lost, db.strict = lost, strict
	return db, end, db.applyAll(scan)
}
