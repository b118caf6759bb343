package file

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/test/check/expect"
)

// printedTables are tables of an OVN NB database as `ovn-nbctl list` prints them.
const printedTables = `NB_Global table
_uuid               : 3cb90e67-3f15-4a15-9875-be7c227b0cac
ipsec               : false
nb_cfg              : 3
options             : {mac_prefix="6a:cb:81", northd_internal_version="23.03.1-20.27.0-70.6"}

logical_switch table
_uuid               : 5e88ab00-c772-4846-8bc5-cd28197846cc
name                : "123"
ports               : [23af6f58-cd9d-4527-a93a-1db557469d0a, 43553c54-d1ee-45a1-9777-8661bc2826e6]
acls                : []
`

// TestPrintedTablesHaveNoTypes checks what is read of printed tables without a schema.
func TestPrintedTablesHaveNoTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables.txt")
	if err := os.WriteFile(path, []byte(printedTables), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := InspectPrinted(t.Context(), path, "OVN_Northbound")
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, info, Info{Name: "OVN_Northbound", Form: FormPrinted, Records: 2, Program: "23.03.1-20.27.0-70.6"})
	content, err := PrintedContent(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	row := content.Rows("Logical_Switch")[0]
	expect.Equal(t, row.String("name"), "123")
	expect.Equal(t, len(row.UUIDs("ports")), 2)
	expect.Equal(t, len(row.UUIDs("acls")), 0)
	number, _ := content.Rows("NB_Global")[0].Int("nb_cfg")
	expect.Equal(t, number, 3)
}

// FuzzPrintedTables checks that any text of printed tables can be read.
func FuzzPrintedTables(f *testing.F) {
	f.Add([]byte(printedTables))
	f.Add([]byte("A table\n_uuid : 5e88ab00-c772-4846-8bc5-cd28197846cc\nb : {a=[,}\nc : \"\\u001b[31m\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "tables.txt")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := InspectPrinted(t.Context(), path, "OVN_Northbound"); err != nil {
			t.Error(err)
		}
	})
}
