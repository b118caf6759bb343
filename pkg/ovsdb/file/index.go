package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/pkg/ovsdb"
)

// Index finds rows of a database file by their UUIDs. It holds where the rows are in the
// file, 32 bytes for each change of a row, and reads a row when it is asked for: a
// southbound database has half a million logical flows, and a question needs a
// hundred. Its methods may be called concurrently.
type Index struct {
	Path    string // of the database file
	Open    Opener // that opened it; nil for os.Open
	Info    Info
	Remarks []string  // what was repaired or left out, as in Standalone
	Changed time.Time // of the last transaction; zero if no record has a time

	file   randomAccess
	close  func()
	schema map[string]tableSchema
	tables map[string][]rowChange // sorted by UUID, the changes of a row in their order

	// whole are the tables that are known as a whole, nil for all; known are those that are known in part, and parts has these where
	// the index is of a database beside them.
	whole []string
	known map[string]KnownTable
	parts *Index
}

// binaryUUID is the UUID of a row as a number.
type binaryUUID struct{ high, low uint64 }

// rowChange is a change of a row: its insertion, new values of columns, or its deletion.
type rowChange struct {
	row    binaryUUID
	offset int64
	length uint32
	diff   bool // the columns are differences
}

// OpenIndex indexes the rows of the named tables, or of all tables if none is named, of
// the database file src, of either form and possibly gzip'd. It reads src once. A row whose
// name is not a UUID is left out. The rows
// of an undamaged standalone file are read from src itself, which must not change; of
// another file, from a repaired copy, for which it needs space.
func OpenIndex(ctx context.Context, src string, tables ...string) (*Index, error) {
	return OpenIndexOf(ctx, nil, src, tables...)
}

// OpenIndexOf works like OpenIndex for a file that open opens.
func OpenIndexOf(ctx context.Context, open Opener, src string, tables ...string) (*Index, error) {
	from, err := openSource(ctx, open, src)
	if err != nil {
		return nil, err
	}
	index, err := newIndex(ctx, src, from, tables)
	if err != nil {
		return nil, err
	}
	index.Open = open
	return index, nil
}

func newIndex(ctx context.Context, src string, from *source, tables []string) (*Index, error) {
	var err error
	index := &Index{Path: src, file: from.file, close: from.close}
	intact := false
	if from.info.Form == FormStandalone && !from.info.Gzip && from.scan.file != nil {
		intact, err = index.read(from, tables)
	}
	index.Info = from.info
	if err == nil && !intact {
		err = index.convert(ctx, src, from, tables)
	}
	if err != nil {
		index.Close()
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return index, nil
}

// Close closes the file. Close of a nil index does nothing.
func (x *Index) Close() {
	if x != nil {
		x.close()
	}
}

// Shared returns the index for a reader that shares it with others: its Close does nothing.
func (x *Index) Shared() *Index {
	shared := *x
	shared.close = func() {}
	return &shared
}

// convert indexes a repaired copy of src, which has no name and ends with the index. It is
// on the disk of src, which has room for its like, unless nothing can be written there.
func (x *Index) convert(ctx context.Context, src string, from *source, tables []string) error {
	defer from.close()
	unnamed, err := unnamedFile(filepath.Dir(src))
	if err != nil {
		return err
	}
	out := outputTo(unnamed)
	x.file, x.close = out.file, func() { unnamed.Close() }
	if from, err = from.again(ctx); err != nil {
		return err
	}
	if x.Info, x.Remarks, err = convert(ctx, src, from, out); err != nil {
		return err
	}
	return x.readOutput(ctx, out, tables)
}

// readOutput indexes the rows of what was written.
func (x *Index) readOutput(ctx context.Context, out *output, tables []string) error {
	if err := out.buf.Flush(); err != nil {
		return err
	}
	if _, err := out.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, err := newSource(ctx, out.file)
	if err != nil {
		return err
	}
	intact, err := x.read(from, tables)
	if err == nil && !intact {
		err = fmt.Errorf("the repaired copy is damaged: %s", from.info.Damage)
	}
	return err
}

// read indexes the records of a standalone file. intact is false if a record is damaged:
// the index is then of no use.
func (x *Index) read(from *source, tables []string) (intact bool, err error) {
	x.tables = map[string][]rowChange{}
	from.scan.rows = func(table string) bool {
		return x.schema[table].Columns != nil && (len(tables) == 0 || slices.Contains(tables, table))
	}
	record, err := from.next()
	for first := true; err == nil; record, err = from.next() {
		if from.info.Damaged > 0 {
			return false, nil
		}
		if first {
			first = false
			db, err := newDatabase(record.body)
			if err != nil {
				return false, fmt.Errorf("%w: record 1: %w", ErrSchema, err)
			}
			x.schema = db.schema
			continue
		}
		finder := record.rows
		if finder == nil && len(tables) > 0 {
			if at, ok := timeOfOther(record.body, tables); ok {
				x.Changed = latest(x.Changed, at)
				continue
			}
		}
		if finder == nil {
			finder = newRowFinder(record.offset+int64(len(record.line)), from.scan.rows)
			_, _ = finder.Write(record.body) // it returns no error
		}
		x.Changed = latest(x.Changed, finder.time)
		for table, changes := range finder.found {
			for i := range changes {
				changes[i].diff = finder.diff
			}
			x.tables[table] = append(x.tables[table], changes...)
		}
	}
	if err != io.EOF {
		return false, err
	}
	for table, changes := range x.tables {
		slices.SortFunc(changes, func(a, b rowChange) int { return cmp.Or(a.row.compare(b.row), cmp.Compare(a.offset, b.offset)) })
		x.tables[table] = slices.Clip(changes)
	}
	return from.info.Damaged == 0, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// timeOfOther returns the time of a transaction that changes no row of the tables; zero if it has
// none. ok is false if it may change some, or if its time is not in the usual form. To search its
// text takes a fraction of the time of finding its rows.
func timeOfOther(body []byte, tables []string) (at time.Time, ok bool) {
	if slices.ContainsFunc(tables, func(table string) bool { return bytes.Contains(body, []byte(table+`"`)) }) {
		return time.Time{}, false
	}
	key := []byte(date + `"`)
	_, text, found := bytes.Cut(body, key)
	if !found {
		return time.Time{}, true
	}
	text = bytes.TrimPrefix(text, []byte(":"))
	after := bytes.TrimLeft(text, "0123456789")
	digits := text[:len(text)-len(after)]
	usual := len(digits) > 0 && (bytes.HasPrefix(after, []byte(",")) || bytes.HasPrefix(after, []byte("}"))) && !bytes.Contains(after, key)
	return parseDate(digits), usual
}

// Changes returns the number of changes of rows of a table that the index holds, which is
// at least the number of rows.
func (x *Index) Changes(table string) int { return len(x.of(table).tables[table]) }

// Row returns a row with the named columns, or with all columns if none is named. ok is
// false if the table has no such row.
func (x *Index) Row(table, uuid string, columns ...string) (row ovsdb.Row, ok bool, err error) {
	x = x.of(table)
	key, valid := parseUUID([]byte(uuid))
	if !valid {
		return ovsdb.Row{}, false, nil
	}
	changes := x.tables[table]
	at, _ := slices.BinarySearchFunc(changes, key, func(change rowChange, key binaryUUID) int { return change.row.compare(key) })
	return x.row(table, changesOf(changes[at:], key), columns)
}

// Begins returns the UUIDs of the rows whose UUIDs begin with these 32 bits, which is what
// OVN writes into cookies and hints.
func (x *Index) Begins(table string, bits uint32) []string {
	x = x.of(table)
	changes := x.tables[table]
	at, _ := slices.BinarySearchFunc(changes, bits, func(change rowChange, bits uint32) int { return cmp.Compare(uint32(change.row.high>>32), bits) })
	var found []string
	for rest := changes[at:]; len(rest) > 0 && uint32(rest[0].row.high>>32) == bits; {
		group := changesOf(rest, rest[0].row)
		if x.exists(group) {
			found = append(found, group[0].row.String())
		}
		rest = rest[len(group):]
	}
	return found
}

// UUIDs returns the UUIDs of the rows of a table, sorted. Unlike Rows it parses no row.
func (x *Index) UUIDs(table string) []string {
	x = x.of(table)
	var uuids []string
	for rest := x.tables[table]; len(rest) > 0; {
		group := changesOf(rest, rest[0].row)
		rest = rest[len(group):]
		if x.exists(group) {
			uuids = append(uuids, group[0].row.String())
		}
	}
	return uuids
}

// Rows yields the rows of a table in order of their UUIDs, with the named columns, or with
// all columns if none is named. It ends with the first error.
func (x *Index) Rows(table string, columns ...string) iter.Seq2[ovsdb.Row, error] {
	x = x.of(table)
	return x.rows(table, x.tables[table], nil, columns)
}

// Each calls use for each row that Rows yields. A nil index has no rows.
func (x *Index) Each(table string, use func(ovsdb.Row), columns ...string) error {
	if x == nil {
		return nil
	}
	for row, err := range x.Rows(table, columns...) {
		if err != nil {
			return err
		}
		use(row)
	}
	return nil
}

// Parts works like Rows, and yields the rows in a number of parts, which can be read
// concurrently. All rows of a part come after the rows of the parts before it.
func (x *Index) Parts(table string, number int, columns ...string) []iter.Seq2[ovsdb.Row, error] {
	x = x.of(table)
	var parts []iter.Seq2[ovsdb.Row, error]
	rest := x.tables[table]
	for i := range number {
		end := len(rest) / (number - i)
		for end > 0 && end < len(rest) && rest[end].row == rest[end-1].row {
			end++
		}
		parts = append(parts, x.rows(table, rest[:end], nil, columns))
		rest = rest[end:]
	}
	return parts
}

// Matching yields the rows of a table whose text in the file accept accepts, and the rows
// that were changed since they were inserted. It parses no other rows.
func (x *Index) Matching(table string, accept func(text []byte) bool) iter.Seq2[ovsdb.Row, error] {
	x = x.of(table)
	return x.rows(table, x.tables[table], accept, nil)
}

func (x *Index) rows(table string, list []rowChange, accept func([]byte) bool, wanted []string) iter.Seq2[ovsdb.Row, error] {
	return func(yield func(ovsdb.Row, error) bool) {
		var buffer []byte
		for rest := list; len(rest) > 0; {
			group := changesOf(rest, rest[0].row)
			rest = rest[len(group):]
			if accept != nil && len(group) == 1 {
				buffer = slices.Grow(buffer[:0], int(group[0].length))[:group[0].length]
				if _, err := x.file.ReadAt(buffer, group[0].offset); err == nil && !accept(buffer) {
					continue
				}
			}
			row, ok, err := x.row(table, group, wanted)
			if (ok || err != nil) && !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// changesOf returns the changes of one row at the beginning of a list.
func changesOf(list []rowChange, row binaryUUID) []rowChange {
	n := 0
	for n < len(list) && list[n].row == row {
		n++
	}
	return list[:n]
}

// exists reports whether the last change of a row leaves it in the database. The text of a
// deletion is null.
func (x *Index) exists(changes []rowChange) bool {
	last := changes[len(changes)-1]
	if last.length > 16 {
		return true
	}
	text, err := readSpan(x.file, span{last.offset, int64(last.length)})
	return err == nil && string(bytes.TrimSpace(text)) != "null"
}

func (x *Index) row(table string, changes []rowChange, wanted []string) (ovsdb.Row, bool, error) {
	if len(changes) == 0 {
		return ovsdb.Row{}, false, nil
	}
	uuid := changes[0].row.String()
	if len(changes) == 1 {
		return x.inserted(table, uuid, changes[0], wanted)
	}
	db := &database{schema: x.schema, tables: map[string]map[string]columns{table: {}}, sets: map[rowID]map[string]*elementList{}}
	for _, c := range changes {
		text, err := readSpan(x.file, span{c.offset, int64(c.length)})
		if err != nil {
			return ovsdb.Row{}, false, fmt.Errorf("reading row %s of table %s: %w", uuid, table, err)
		}
		if change, ok := columnsOf(text, wanted); ok {
			db.change(rowID{table, uuid}, change, c.diff, c.offset)
		}
	}
	db.composeSets()
	row := db.tables[table][uuid]
	return ovsdb.ParseRow(uuid, row), row != nil, nil
}

// inserted returns a row that was not changed since it was inserted.
func (x *Index) inserted(table, uuid string, change rowChange, wanted []string) (ovsdb.Row, bool, error) {
	text, err := readSpan(x.file, span{change.offset, int64(change.length)})
	if err != nil {
		return ovsdb.Row{}, false, fmt.Errorf("reading row %s of table %s: %w", uuid, table, err)
	}
	found, ok := columnsOf(text, wanted)
	return ovsdb.ParseRow(uuid, found), ok && found != nil, nil
}

// columnsOf returns the wanted columns of a row, or all columns if none is wanted; nil for
// null. ok is false for another text. The text must be valid JSON but for its blanks.
func columnsOf(text []byte, wanted []string) (found columns, ok bool) {
	text = bytes.TrimSpace(text)
	if string(text) == "null" {
		return nil, true
	}
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	found = columns{}
	for rest := text[1 : len(text)-1]; len(rest) > 0 && (len(wanted) == 0 || len(found) < len(wanted)); {
		colon := endOf(rest, ':')
		key := bytes.TrimSpace(rest[:colon])
		rest = rest[min(colon+1, len(rest)):]
		comma := endOf(rest, ',')
		value := rest[:comma]
		rest = rest[min(comma+1, len(rest)):]
		if len(key) < 2 || key[0] != '"' {
			continue
		}
		if name := string(key[1 : len(key)-1]); len(wanted) == 0 || slices.Contains(wanted, name) {
			found[name] = value
		}
	}
	return found, true
}

// endOf returns the index of the first separator that is in no string, list or object, and
// the length of the text if there is none.
func endOf(text []byte, separator byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch char := text[i]; {
		case char == '"':
			i += endOfString(text[i+1:])
		case char == '{' || char == '[':
			depth++
		case char == '}' || char == ']':
			depth--
		case char == separator && depth == 0:
			return i
		}
	}
	return len(text)
}

// endOfString returns the length of the rest of a string with the quote at its end.
func endOfString(rest []byte) int {
	for i := 0; ; {
		end := bytes.IndexByte(rest[i:], '"')
		if end < 0 {
			return len(rest)
		}
		escape := bytes.IndexByte(rest[i:i+end], '\\')
		if escape < 0 {
			return i + end + 1
		}
		if i += escape + 2; i >= len(rest) {
			return len(rest)
		}
	}
}

// parseUUID reads a UUID in the notation of OVSDB.
func parseUUID(text []byte) (key binaryUUID, ok bool) {
	var digits [32]byte
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return key, false
	}
	n := copy(digits[:], text[:8])
	n += copy(digits[n:], text[9:13])
	n += copy(digits[n:], text[14:18])
	n += copy(digits[n:], text[19:23])
	copy(digits[n:], text[24:])
	var raw [16]byte
	if _, err := hex.Decode(raw[:], digits[:]); err != nil {
		return key, false
	}
	return binaryUUID{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])}, true
}

func (k binaryUUID) compare(other binaryUUID) int {
	if k.high != other.high {
		return cmp.Compare(k.high, other.high)
	}
	return cmp.Compare(k.low, other.low)
}

func (k binaryUUID) String() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], k.high)
	binary.BigEndian.PutUint64(raw[8:], k.low)
	text := make([]byte, 0, 36)
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[[]int{0, 4, 6, 8, 10}[i]:end])
	}
	return string(text)
}

// rowFinder finds the changes of rows in a transaction that is written to it in pieces
// ({TABLE: {UUID: COLUMNS, ...}, ...}). It keeps no text.
type rowFinder struct {
	want  func(table string) bool
	found map[string][]rowChange // by table
	diff  bool                   // the transaction has the mark for differences
	time  time.Time              // of the transaction; zero if it has none

	stringReader       // the key is the latest of the object at depth 1 or 2
	offset       int64 // of the next byte
	depth        int
	value        bool   // the key of the object at depth 1 or 2 is complete, and its value follows
	table        string // "" for one that is not wanted
	isMark       bool   // the value belongs to the mark
	isDate       bool   // the value is the time
	date         []byte // the digits of the time
	begin        int64  // of the value of a row; 0 for none
	row          binaryUUID
}

// maxDate is longer than the text of any time, in bytes.
const maxDate = 32

func newRowFinder(offset int64, want func(table string) bool) *rowFinder {
	return &rowFinder{want: want, found: map[string][]rowChange{}, offset: offset}
}

// Write follows the structure of the next piece of the text.
func (f *rowFinder) Write(data []byte) (int, error) {
	for i := 0; i < len(data); i++ {
		if f.quoted {
			i = f.readString(data, i)
			continue
		}
		switch data[i] {
		case '"':
			f.quoted = true
			if f.depth <= 2 && !f.value {
				f.inKey, f.key = true, f.key[:0]
			}
		case ':':
			if f.depth <= 2 && !f.value {
				f.beginValue(f.offset + int64(i) + 1)
			}
		case ',':
			if f.depth <= 2 {
				f.endValue(f.offset + int64(i))
			}
		case '{', '[':
			if f.depth++; f.depth == 2 {
				f.value = false
			}
		case '}', ']':
			if f.depth <= 2 {
				f.endValue(f.offset + int64(i))
			}
			f.depth--
		case 't':
			f.diff = f.diff || f.isMark && f.depth == 1
		default:
			if f.isDate && len(f.date) < maxDate {
				f.date = append(f.date, data[i])
			}
		}
	}
	f.offset += int64(len(data))
	return len(data), nil
}

func (f *rowFinder) beginValue(position int64) {
	f.value = true
	switch f.depth {
	case 1:
		f.table, f.isMark, f.isDate = "", string(f.key) == isDiff, string(f.key) == date
		if f.want(string(f.key)) {
			f.table = string(f.key)
		}
	case 2:
		f.begin = 0
		if f.table == "" {
			return
		}
		if row, ok := parseUUID(f.key); ok {
			f.row, f.begin = row, position
		}
	}
}

func (f *rowFinder) endValue(position int64) {
	if length := position - f.begin; f.depth == 2 && f.begin > 0 && length <= math.MaxUint32 {
		f.found[f.table] = append(f.found[f.table], rowChange{row: f.row, offset: f.begin, length: uint32(length)})
	}
	if f.isDate && f.depth == 1 {
		f.time, f.date = parseDate(f.date), nil
	}
	f.begin, f.value, f.isMark, f.isDate = 0, false, false, false
}
