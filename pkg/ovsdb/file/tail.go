package file

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// FormTail is the form of a database file whose beginning is missing (ReadTail).
const FormTail Form = "end of a file"

// maxTail is the size of the largest file that ReadTail reads, in bytes. sos keeps 25 MiB.
const maxTail = 256 << 20

// ReadTail reads the rows of a database file whose beginning is missing, with the schema of the
// database. Most of what such a file holds is the rest of the record into which ovsdb-server compacted
// the database, and transactions after it. Only rows that are known to be whole are returned: those of
// the compacted record, and those in which a later transaction sets each column that a row of the table
// needs. The remarks count the others.
func ReadTail(ctx context.Context, path string, schema Schema) (tables map[string][]ovsdb.Record, remarks []string, err error) {
	text, err := readBounded(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	db, err := newDatabase(schema.text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", schema.path, err)
	}
	tail := tail{db: db, needed: neededColumns(db.schema)}
	scan := newScanner(ctx, bytes.NewReader(text))
	before, _, err := scan.readToHeader(0)
	if err != nil {
		return nil, nil, err
	}
	tail.addRest(text[:before])
	record, err := scan.next()
	for ; err == nil; record, err = scan.next() {
		tail.add(record)
	}
	if err != io.EOF {
		return nil, nil, err
	}
	db.composeSets()
	return tail.records(), tail.remarks(), nil
}

func readBounded(ctx context.Context, path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(interrupt.Reader(ctx, in), maxTail+1))
	if err == nil && len(text) > maxTail {
		err = fmt.Errorf("%s: longer than %d MiB", path, maxTail>>20)
	}
	return text, err
}

// tail is a database of whose file the beginning is missing.
type tail struct {
	db      *database
	needed  map[string][]string // the columns without which a row of a table is not whole
	partial int                 // changes of rows that are not whole
	unnamed int                 // rows whose table is not known
}

// neededColumns returns, for each table, the columns that every row sets: references that a row has to
// have, values of which none is the default, and the keys of indexes. Tables without any are left out.
func neededColumns(schema map[string]tableSchema) map[string][]string {
	needed := map[string][]string{}
	for name, table := range schema {
		columns := map[string]bool{}
		for column, description := range table.Columns {
			kind := description.Type
			required := kind.required() && !kind.isMap() && !kind.holdsSeveral()
			noDefault := len(kind.Key.Enum) > 0 && !kind.Key.accepts(defaults()[kind.Key.Type])
			if required && (noDefault || kind.Key.RefTable != "" && kind.Key.RefType != "weak") {
				columns[column] = true
			}
		}
		for _, index := range table.Indexes {
			for _, column := range index {
				columns[column] = columns[column] || !table.Columns[column].Type.refers()
			}
		}
		maps.DeleteFunc(columns, func(_ string, isNeeded bool) bool { return !isNeeded })
		if len(columns) > 0 {
			needed[name] = slices.Sorted(maps.Keys(columns))
		}
	}
	return needed
}

// isWhole reports whether a row sets all that a row of its table needs.
func (t *tail) isWhole(table string, row columns) bool {
	needed, known := t.needed[table]
	return known && !slices.ContainsFunc(needed, func(column string) bool { return row[column] == nil })
}

var (
	// rowOrTable matches the beginning of a member of an object whose value is an object.
	rowOrTable = lazyregexp.New(`"((?:[^"\\]|\\.){1,64})":\{`)
	// compactedMark matches what only a record with the whole content of a database has: the comment
	// of ovsdb-server, or members of the first record of a cluster member (ovsdb(5)).
	compactedMark = lazyregexp.New(`"_comment":"(?:compact|convert|created from )|"prev_(?:eid|index|servers|term)":`)
)

// addRest takes the rows in the rest of a record whose beginning is missing.
func (t *tail) addRest(text []byte) {
	isCompacted := compactedMark.Match(text)
	table := ""
	var first []rowAt // before the name of any table
	for {
		at := rowOrTable.FindSubmatchIndex(text)
		if at == nil {
			break
		}
		name := string(text[at[2]:at[3]])
		if !ovsdb.IsUUID(name) {
			if t.db.tables[name] != nil {
				table = name
			}
			text = text[at[1]:]
			continue
		}
		var row columns
		decoder := json.NewDecoder(bytes.NewReader(text[at[1]-1:]))
		if decoder.Decode(&row) != nil {
			text = text[at[1]:]
			continue
		}
		text = text[at[1]-1+int(decoder.InputOffset()):]
		if table == "" {
			first = append(first, rowAt{name, row})
			continue
		}
		t.insert(table, name, row, isCompacted)
	}
	t.addUnnamed(first, isCompacted)
}

type rowAt struct {
	uuid string
	row  columns
}

// addUnnamed takes rows of one table whose name is missing, if only one table has all of their columns.
func (t *tail) addUnnamed(rows []rowAt, isCompacted bool) {
	var fitting []string
	for name, table := range t.db.schema {
		lacks := func(row rowAt) bool {
			for column := range row.row {
				if _, known := table.Columns[column]; !known {
					return true
				}
			}
			return false
		}
		if len(rows) > 0 && !slices.ContainsFunc(rows, lacks) {
			fitting = append(fitting, name)
		}
	}
	if len(fitting) != 1 {
		t.unnamed += len(rows)
		return
	}
	for _, row := range rows {
		t.insert(fitting[0], row.uuid, row.row, isCompacted)
	}
}

// insert adds a row. Rows of a compacted record are whole.
func (t *tail) insert(table, uuid string, row columns, isCompacted bool) {
	if !isCompacted && !t.isWhole(table, row) {
		t.partial++
		return
	}
	t.db.tables[table][uuid] = row
}

// add applies a record: a transaction, or an entry of a cluster's log.
func (t *tail) add(record *record) {
	body := record.body
	if record.magic == "CLUSTER" {
		var entry clusterRecord
		if json.Unmarshal(body, &entry) != nil || len(entry.Data) != 2 {
			return
		}
		body = entry.Data[1]
	}
	var transaction map[string]json.RawMessage
	if json.Unmarshal(body, &transaction) != nil {
		return
	}
	var comment string
	_ = json.Unmarshal(transaction["_comment"], &comment) // one of another type is none
	isCompacted, differs := compacted.MatchString(comment), string(transaction[isDiff]) == "true"
	for table, text := range transaction {
		var changes map[string]columns
		if t.db.tables[table] == nil || json.Unmarshal(text, &changes) != nil {
			continue
		}
		for uuid, change := range changes {
			id := rowID{table, uuid}
			old := t.db.tables[table][uuid]
			switch {
			case change == nil:
				delete(t.db.tables[table], uuid)
				delete(t.db.sets, id)
			case old != nil:
				t.db.modify(id, old, change, differs)
			default:
				t.insert(table, uuid, change, isCompacted)
			}
		}
	}
}

// records returns the rows as ovs-vsctl prints them.
func (t *tail) records() map[string][]ovsdb.Record {
	tables := map[string][]ovsdb.Record{}
	for name, rows := range t.db.tables {
		for _, uuid := range slices.Sorted(maps.Keys(rows)) {
			record := ovsdb.Record{UUID: uuid}
			for _, column := range slices.Sorted(maps.Keys(rows[uuid])) {
				if described, known := t.db.schema[name].Columns[column]; known {
					record.Columns = append(record.Columns, ovsdb.Value{Column: column, Text: printValue(rows[uuid][column], described.Type)})
				}
			}
			tables[name] = append(tables[name], record)
		}
	}
	return tables
}

func (t *tail) remarks() (remarks []string) {
	if t.partial > 0 {
		remarks = append(remarks, phrase.Count(t.partial, "change")+" of rows that begin before the rest of the file are left out")
	}
	if t.unnamed > 0 {
		remarks = append(remarks, phrase.Count(t.unnamed, "row")+" are left out, since the name of their table is before the rest of the file")
	}
	return remarks
}
