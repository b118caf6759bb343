package file

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/captures"
)

// loadAll reads a database as a whole, as a repair does, without an index.
func loadAll(t *testing.T, src string) (db *database, info Info, remarks []string, err error) {
	t.Helper()
	out, err := newOutput(filepath.Join(t.TempDir(), "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.discard()
	from, err := openSource(t.Context(), nil, src)
	if err != nil {
		return nil, Info{}, nil, err
	}
	defer from.close()
	if info, remarks, err = convert(t.Context(), src, from, out); err == nil {
		db, _, err = load(t.Context(), out, nil, false)
	}
	return db, info, remarks, err
}

// rowsOf returns the rows of a table in order of their UUIDs.
func rowsOf(db *database, table string) []ovsdb.Row {
	var rows []ovsdb.Row
	for _, uuid := range slices.Sorted(maps.Keys(db.tables[table])) {
		rows = append(rows, ovsdb.ParseRow(uuid, db.tables[table][uuid]))
	}
	return rows
}

// checkIndex compares an index of a file with what loadAll reads of it.
func checkIndex(t *testing.T, text []byte) {
	t.Helper()
	src := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(src, text, 0o600); err != nil {
		t.Fatal(err)
	}
	want, info, remarks, wantErr := loadAll(t, src)
	x, err := OpenIndex(t.Context(), src)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("index: %v, want %v", err, wantErr)
	}
	if err != nil {
		return
	}
	defer x.Close()
	if !reflect.DeepEqual(x.Info, info) || !slices.Equal(x.Remarks, remarks) {
		t.Errorf("%+v %q\nwant %+v %q", x.Info, x.Remarks, info, remarks)
	}
	for table := range want.tables {
		var got []ovsdb.Row
		for row, err := range x.Rows(table) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row)
		}
		noRow := func(row ovsdb.Row) bool { return !ovsdb.IsUUID(row.UUID) } // no server reads it
		rows := slices.DeleteFunc(rowsOf(want, table), noRow)
		if len(got) != len(rows) || len(rows) > 0 && !reflect.DeepEqual(got, rows) {
			t.Errorf("%s: %d rows, want %d\n%v\n%v", table, len(got), len(rows), got, rows)
		}
		var inParts []ovsdb.Row
		for _, part := range x.Parts(table, 3) {
			for row, err := range part {
				if err != nil {
					t.Fatal(err)
				}
				inParts = append(inParts, row)
			}
		}
		if !reflect.DeepEqual(inParts, got) {
			t.Errorf("%s in parts: %v", table, inParts)
		}
		checkAlone(t, src, table, got, x.Changed)
		for _, row := range rows {
			var bits uint32
			if _, err := fmt.Sscanf(row.UUID[:8], "%x", &bits); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(x.Begins(table, bits), row.UUID) {
				t.Errorf("%s %s is not found by its beginning", table, row.UUID)
			}
		}
	}
	if files, err := os.ReadDir(filepath.Dir(src)); err != nil || len(files) != 1 {
		t.Errorf("files beside the database: %v %v", files, err)
	}
}

// checkAlone checks that an index of one table has its rows, and the time of the last
// transaction, which may have changed other tables.
func checkAlone(t *testing.T, src, table string, rows []ovsdb.Row, changed time.Time) {
	t.Helper()
	x, err := OpenIndex(t.Context(), src, table)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var got []ovsdb.Row
	for row, err := range x.Rows(table) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if !reflect.DeepEqual(got, rows) || !x.Changed.Equal(changed) {
		t.Errorf("%s alone: %d rows of %v, want %d of %v", table, len(got), x.Changed, len(rows), changed)
	}
}

// TestIndexHasTheRowsOfTheDatabase compares an index of the databases of all captures with
// what is read of them, also where they are gzip'd, or damaged in a record: of each database in one of these shapes,
// and in a sweep in all.
func TestIndexHasTheRowsOfTheDatabase(t *testing.T) {
	n := 0
	for _, pattern := range []string{"*nb_db.db", "*sb_db.db", "*conf.db"} {
		captures.Captured(t, pattern, 1<<30, func(text []byte) {
			if !bytes.HasPrefix(text, []byte("OVSDB")) {
				return
			}
			damaged := bytes.Clone(text)
			damaged[len(damaged)/2] ^= 1
			shapes := [][]byte{text, files.Gzip(t, text), slices.Concat(text, []byte("text that is no record\n")),
				text[:len(text)-20], damaged}
			for i, shape := range shapes {
				if i == n%len(shapes) || sweep.Whole() {
					checkIndex(t, shape)
				}
			}
			n++
		})
	}
}

// TestIndexFollowsChanges checks rows that are changed by differences and as a whole,
// removed, and inserted again, in records of every size.
func TestIndexFollowsChanges(t *testing.T) {
	const row, other = "01234567-89ab-4cde-8f01-23456789abcd", "01234567-0000-4000-8000-000000000001"
	var file []byte
	add := func(body string) { file = append(append(file, formatHeader("JSON", []byte(body))...), body...) }
	add(`{"name":"x","version":"1.0.0","tables":{"T":{"columns":{"s":{"type":{"key":"string","min":0,"max":"unlimited"}},"n":{"type":"string"}}},"U":{"columns":{}}}}` + "\n")
	check := func(what string) {
		t.Run(what, func(t *testing.T) { checkIndex(t, file) })
	}
	add(`{"T":{"` + row + `":{"s":["set",["a","b"]],"n":"\"},{\\"},"` + other + `":{"n":"other"}},"_date":1760000000000}` +
		"\n")
	check("inserted")
	add(`{"_is_diff":true,"T":{"` + row + `":{"s":["set",["b","c"]]}}}` + "\n")
	check("difference")
	add(`{"T":{"` + row + `":{"s":"d"},"` + other + `":{"n":"true"}},"_is_diff" : true}` + "\n")
	check("mark at the end")
	add(` { "T" : { "` + row + `" : { "s" : ["set",[]] } , "no-uuid" : { "s" : "x" } } , "U" : null , "V" : { "` + row +
		`" : {} } } ` + "\n")
	check("whole")
	add(`{"T":{"` + row + `":null}}` + "\n")
	check("removed")
	add(`{"T":{"` + row + `":{"n":"` + strings.Repeat("x", large) + `"}}}` + "\n")
	check("inserted again, large")
	add(`{"_is_diff":true,"T":{"` + row + `": null ,"` + other + `":{"s":"` + strings.Repeat("y", large) + `"}}}` + "\n")
	check("removed in a large record")
	add(`{"U":{"` + row + `":{}},"_date":1770000000000}` + "\n")
	check("a later transaction of another table")
	add(`{"U":{"` + other + `":{}},"_date" : 1770000000001}` + "\n")
	check("a time with blanks")
	add(`{"U":{"` + row + `":null},"_date":1770000000002,"_date":1770000000003}` + "\n")
	check("two times")
}

// TestRowFinderReadsPieces writes a transaction in pieces of every size.
func TestRowFinderReadsPieces(t *testing.T) {
	const text = `{"A":{"01234567-89ab-4cde-8f01-23456789abcd":{"x":"\"}","y":["map",[["a","b"]]]},"11234567-89ab-4cde-8f01-23456789abcd":null},"_is_diff":true,"B":{"21234567-89ab-4cde-8f01-23456789abcd":{}}}`
	all := newRowFinder(7, func(string) bool { return true })
	if _, err := all.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if len(all.found["A"]) != 2 || len(all.found["B"]) != 1 || !all.diff {
		t.Fatalf("%+v", all)
	}
	c := all.found["A"][0]
	if got := text[c.offset-7 : c.offset-7+int64(c.length)]; got != `{"x":"\"}","y":["map",[["a","b"]]]}` {
		t.Errorf("text of a row: %s", got)
	}
	for size := 1; size < len(text); size++ {
		f := newRowFinder(7, func(string) bool { return true })
		for piece := range slices.Chunk([]byte(text), size) {
			if _, err := f.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(f.found, all.found) || !f.diff {
			t.Errorf("in pieces of %d: %+v", size, f.found)
		}
	}
}

func FuzzIndex(f *testing.F) {
	captures.Captured(f, "*conf.db", 16<<10, func(content []byte) { f.Add(content) })
	f.Fuzz(func(t *testing.T, text []byte) {
		src := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(src, text, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := OpenIndex(t.Context(), src)
		if err != nil {
			return
		}
		defer x.Close()
		for table := range x.tables {
			for row, err := range x.Rows(table) {
				if err != nil && err != io.EOF {
					t.Fatal(err)
				}
				_ = row.Columns()
			}
		}
	})
}

// BenchmarkIndex indexes 200,000 logical flows, and reports how much memory the index takes.
func BenchmarkIndex(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sb.db")
	writeLarge(b, path, 200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		x, err := OpenIndex(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		x.Close()
	}
}
