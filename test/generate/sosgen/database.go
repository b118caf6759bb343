package sosgen

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// header matches the line before each record of a database file.
var header = regexp.MustCompile(`(?m)^OVSDB (JSON|CLUSTER) [0-9]+ \S+\n`)

// records splits a database file into the bodies of its records.
func records(file []byte) (magic string, bodies [][]byte) {
	at := header.FindAllSubmatchIndex(file, -1)
	for i, m := range at {
		end := len(file)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		magic = string(file[m[2]:m[3]])
		bodies = append(bodies, file[m[1]:end])
	}
	return magic, bodies
}

// record returns a record with its header.
func record(magic string, body []byte) []byte {
	return append(fmt.Appendf(nil, "OVSDB %s %d %x\n", magic, len(body), sha1.Sum(body)), body...)
}

// Rewritten applies a change to each record of a database file, and writes
// lengths and checksums that match: the database of another node.
func Rewritten(file []byte, change func([]byte) []byte) []byte {
	var out []byte
	magic, bodies := records(file)
	for _, body := range bodies {
		out = append(out, record(magic, change(body))...)
	}
	return out
}

// Torn returns a database file whose copy ended in the middle of the last record.
func Torn(file []byte) []byte {
	_, bodies := records(file)
	last := len(bodies[len(bodies)-1])
	return bytes.Clone(file[:len(file)-last+last/2])
}

// Tail returns the end of a file, which is what sos keeps of one above its limit.
func Tail(file []byte, limit int) []byte { return bytes.Clone(file[max(0, len(file)-limit):]) }

// WithNodeName returns an OVN database of an interconnect zone: its global row
// names the node.
func WithNodeName(tb testing.TB, file []byte, database, node string) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		tb.Fatal(err)
	}
	ovs.Run(tb, "ovsdb-tool", "transact", path, fmt.Sprintf(
		`[%q, {"op": "mutate", "table": %q, "where": [], "mutations": [["options", "insert", ["map", [["name", %q]]]]]}]`, database, globalTable(database), node))
	return readFile(tb, path)
}

// globalTable returns the name of the table that has exactly one row.
func globalTable(database string) string {
	return map[string]string{OVS: "Open_vSwitch", NB: "NB_Global", SB: "SB_Global"}[database]
}
