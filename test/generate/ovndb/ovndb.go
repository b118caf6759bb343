// Package ovndb writes database files of OVN for tests, row by row: rows that no daemon
// would write, and databases of the size of large deployments.
package ovndb

import (
	"bufio"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Rows are the rows of a transaction, by table and UUID, with values in the notation of
// OVSDB (RFC 7047, 5.1).
type Rows map[string]map[string]Row

// Row are the columns of a row.
type Row map[string]any

// File is a database file that is being written.
type File struct {
	Path string
	tb   testing.TB
	file *os.File
	out  *bufio.Writer
}

// Create creates a database file with the schema in a file.
func Create(tb testing.TB, schema string) *File {
	tb.Helper()
	text, err := os.ReadFile(schema)
	if err != nil {
		tb.Skip(err)
	}
	f := &File{Path: filepath.Join(tb.TempDir(), "ovn.db"), tb: tb}
	if f.file, err = os.Create(f.Path); err != nil {
		tb.Fatal(err)
	}
	f.out = bufio.NewWriterSize(f.file, 1<<20)
	f.Add(json.RawMessage(text))
	return f
}

// Add adds a record: rows, or another JSON text.
func (f *File) Add(record any) {
	f.tb.Helper()
	text, err := json.Marshal(record)
	if err != nil {
		f.tb.Fatal(err)
	}
	text = append(text, '\n')
	fmt.Fprintf(f.out, "OVSDB JSON %d %x\n%s", len(text), sha1.Sum(text), text)
}

// Close completes the file, and returns its path.
func (f *File) Close() string {
	f.tb.Helper()
	if err := f.out.Flush(); err != nil {
		f.tb.Fatal(err)
	}
	if err := f.file.Close(); err != nil {
		f.tb.Fatal(err)
	}
	return f.Path
}

// UUID returns the notation of a reference to a row.
func UUID(uuid string) []string { return []string{"uuid", uuid} }

// Set returns the notation of a set.
func Set(elements ...any) []any { return []any{"set", append([]any{}, elements...)} }

// Map returns the notation of a map of keys and values, in turn.
func Map(pairs ...string) []any {
	list := [][2]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, [2]string{pairs[i], pairs[i+1]})
	}
	return []any{"map", list}
}

// newUUID returns a random UUID.
func newUUID(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}
