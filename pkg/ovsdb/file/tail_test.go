package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/daemons/ovs"
)

// TestTailHasNoWrongRow cuts the beginning off a database of a real server at many places. Each row
// that is read of the rest is the live one, in all columns, and few are left out near the beginning.
func TestTailHasNoWrongRow(t *testing.T) {
	needTools(t)
	dir := ovs.Dir(t)
	path := filepath.Join(dir, "conf.db")
	ovs.Run(t, "ovsdb-tool", "create", path, ovsSchema)
	s := serve(t, path)
	bridge := func(i int) string {
		return fmt.Sprintf("add-br br%d -- set bridge br%d external_ids:id=x%d other_config:a=b -- add-port br%d p%d -- set interface p%d type=internal options:key=%d", i, i, i, i, i, i, i)
	}
	s.vsctl(t, "init")
	for i := range 40 {
		s.vsctl(t, bridge(i))
	}
	ovs.Run(t, "ovs-appctl", "-t", s.ctl, "ovsdb-server/compact")
	for i := 40; i < 50; i++ {
		s.vsctl(t, bridge(i), fmt.Sprintf("set bridge br%d external_ids:id=y other_config:c=d", i-30),
			fmt.Sprintf("add-port br%d q%d tag=%d", i-20, i, i), fmt.Sprintf("del-br br%d", i-35))
	}
	live, err := ovsdb.Tables(strings.NewReader(ovs.Run(t, "ovsdb-client", "-f", "list", "dump", s.remote, ovsdb.OVS)), "")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schemaText, err := os.ReadFile(ovsSchema)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := ParseSchema(ovsSchema, schemaText)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1000; cut < len(whole); cut += len(whole) / 60 {
		tail := filepath.Join(dir, "tail")
		if err := os.WriteFile(tail, whole[cut:], 0o600); err != nil {
			t.Fatal(err)
		}
		tables, remarks, err := ReadTail(t.Context(), tail, schema)
		if err != nil {
			t.Fatalf("from byte %d on: %v", cut, err)
		}
		rows := compareRows(t, cut, tables, live)
		t.Logf("from byte %d of %d on: %d rows, %v", cut, len(whole), rows, remarks)
		if beforeRows := cut < 20_000; beforeRows && rows < 150 {
			t.Errorf("from byte %d of %d on: only %d rows, %v", cut, len(whole), rows, remarks)
		}
	}
}

// compareRows checks that each row is a live one, and returns their number.
func compareRows(t *testing.T, cut int, tables, live map[string][]ovsdb.Record) (rows int) {
	t.Helper()
	for table, records := range tables {
		known := map[string]ovsdb.Record{}
		for _, record := range live[table] {
			known[record.UUID] = record
		}
		for _, record := range records {
			rows++
			if known[record.UUID].UUID == "" {
				t.Errorf("from byte %d on: %s has no row %s", cut, table, record.UUID)
			}
			for _, value := range known[record.UUID].Columns {
				got, isDefault := record.Column(value.Column), slices.Contains([]string{`""`, "[]", "{}", "0", "false"}, value.Text)
				if got != known[record.UUID].Column(value.Column) && !(got == "" && isDefault) {
					t.Errorf("from byte %d on: %s of %s %s is %q, not %q", cut, value.Column, table, record.UUID, got, value.Text)
				}
			}
		}
	}
	return rows
}
