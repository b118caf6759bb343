package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// TestTablesInEachForm prints all tables of a database with ovn-nbctl in each form, and compares what is read of a
// ticket with them with the database itself.
func TestTablesInEachForm(t *testing.T) {
	central := ovs.StartCentral(t)
	central.Nbctl("ls-add", "sw0", "--", "lsp-add", "sw0", "vm1", "--", "lsp-set-addresses", "vm1",
		"0a:00:00:00:00:01 10.0.0.1", "unknown",
		"--", "lsp-add", "sw0", "123", "--", "set", "Logical_Switch_Port", "vm1", `external_ids:"a name"="x, \"y\" = {z} ü"`,
		`external_ids:id=5c84487c-9c32-422f-b7a2-8d8fea123188`,
		"--", "--name=deny", "--log", "acl-add", "sw0", "from-lport", "1000", `ip4 && inport=="vm1"`, "drop", "--", "acl-add",
		"sw0", "to-lport", "1001", "ip", "allow-related",
		"--", "lb-add", "lb0", "10.0.0.100:80", "10.0.0.1:80,10.0.0.2:80", "--", "ls-lb-add", "sw0", "lb0", "--", "qos-add",
		"sw0", "to-lport", "100", "ip4", "rate=1000", "burst=100")
	live := central.Content("OVN_Northbound")
	tables := []string{"NB_Global", "Logical_Switch", "Logical_Switch_Port", "ACL", "Load_Balancer", "QoS", "Address_Set",
		"NAT"}
	text, err := os.ReadFile(ovs.NBSchema)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := file.ParseSchema(ovs.NBSchema, text)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string][]string{"list": {"list"}, "find": {"find"}, "csv": {"-f", "csv", "list"},
		"table": {"--format=table", "list"}, "json": {"-f", "json", "list"}, "data": {"--data=json", "list"}} {
		pasted := "Here:\n\n"
		for _, table := range tables {
			line := append(append([]string{}, form...), table)
			pasted += "[root@n1 ~]# ovn-nbctl " + strings.Join(line, " ") + "\n" + central.Nbctl(line...)
		}
		pasted += "[root@n1 ~]# exit\n"
		_, found, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": pasted}), "a.md"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		printed, err := file.PrintedTables(t.Context(), filepath.Join(dir, "db", "ovn_nb", "printed", "tables.txt"))
		if err != nil {
			t.Fatalf("%s: %v %v", name, err, found)
		}
		_, empty := printed["NAT"]
		expect.Equal(t, empty && len(printed["NAT"]) == 0 && len(printed["ACL"]) == 2, true,
			name+": an empty table, and one that is not")
		made := filepath.Join(t.TempDir(), "nb.db")
		if _, err := file.FromTables(t.Context(), schema, printed, made); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		expect.Equal(t, ovs.Serve(t, made).Content("OVN_Northbound"), live, name+": what a server makes of the tables")
	}
}

// TestTablesWithoutTheRowsThatTheyReferTo checks that rows which were not printed are a loss: they are not taken for
// none.
func TestTablesWithoutTheRowsThatTheyReferTo(t *testing.T) {
	const (
		row   = "_uuid               : 5e88ab00-c772-4846-8bc5-cd28197846cc\nacls                : [23af6f58-cd9d-4527-a93a-1db557469d0a]\nexternal_ids        : {id=\"43553c54-d1ee-45a1-9777-8661bc2826e6\"}\nname                : sw0\n"
		acl   = "_uuid               : 23af6f58-cd9d-4527-a93a-1db557469d0a\nmatch               : ip\n"
		table = "# ovn-nbctl list Logical_Switch\n" + row
	)
	for name, c := range map[string]struct{ text, lost string }{
		"no table": {table, "1 row that Logical_Switch.acls refers to: not printed"},
		"some columns": {table + "# ovn-nbctl --columns=match list ACL\nmatch               : ip\n",
			"1 row that Logical_Switch.acls refers to: not printed; "},
		"some rows": {table + "# ovn-nbctl find ACL priority=7\n",
			"1 row that Logical_Switch.acls refers to: not printed"},
		"values alone": {table + "# ovn-nbctl --bare list ACL\n23af6f58-cd9d-4527-a93a-1db557469d0a\nip\n",
			"1 row that Logical_Switch.acls refers to: not printed"},
		"a table without rows": {table + "# ovn-nbctl list ACL\n# exit\n",
			"1 row that Logical_Switch.acls refers to: not printed"},
		"all": {table + "# ovn-nbctl list ACL\n" + acl, ""},
	} {
		nodes, _, _, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": c.text}), "a.md"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lost := ""
		for _, node := range nodes {
			for _, collection := range node.Collections {
				lost += strings.Join(collection.Lost, "; ")
			}
		}
		expect.Equal(t, lost == c.lost || c.lost != "" && strings.HasPrefix(lost, c.lost), true, name+": "+lost)
	}
}
