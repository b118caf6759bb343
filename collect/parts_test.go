package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// partOf collects a ticket, and returns what is known of a database, the rows of it, and what is lost.
func partOf(t *testing.T, kind workdir.Kind, text string) (known map[string]file.KnownTable, rows *file.Content,
	lost string) {
	t.Helper()
	known, path, lost := partIn(t, kind, text)
	if _, err := os.Stat(path); err != nil {
		return known, &file.Content{}, lost
	}
	rows, err := file.PrintedContent(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return known, rows, lost
}

// partIn collects a ticket, and returns what is known of a database, the file with it, and what is lost.
func partIn(t *testing.T, kind workdir.Kind, text string) (known map[string]file.KnownTable, path, lost string) {
	t.Helper()
	nodes, found, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": text}), "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		for _, collection := range node.Collections {
			lost += strings.Join(collection.Lost, "; ")
			for _, one := range collection.Files {
				if one.Path == filepath.Join("host", workdir.HostParts(kind)) && one.Partial != nil {
					known = one.Partial.Tables
				}
			}
		}
	}
	lost += strings.Join(slices.Concat(found.Lost, found.Unused, found.Remarks), "; ")
	for _, node := range found.Nodes {
		lost += strings.Join(node.Remarks, "; ")
	}
	return known, filepath.Join(dir, "host", workdir.HostParts(kind)), lost
}

// TestPartsOfTables prints some rows and some columns of tables with ovn-nbctl, in each way that it has, and checks
// what is known of them.
func TestPartsOfTables(t *testing.T) {
	central := ovs.StartCentral(t)
	central.Nbctl("ls-add", "sw0", "--", "lsp-add", "sw0", "vm1", "--", "lsp-set-addresses", "vm1",
		"0a:00:00:00:00:01 10.0.0.1", "unknown", "--", "lsp-add", "sw0", "123",
		"--", "--name=deny", "--log", "acl-add", "sw0", "from-lport", "1000", `ip4 && inport=="vm1"`, "drop", "--", "acl-add",
		"sw0", "to-lport", "1001", "ip", "allow-related")
	printed := ""
	for _, table := range []string{"ACL", "Logical_Switch", "Logical_Switch_Port"} {
		printed += table + " table\n" + central.Nbctl("list", table)
	}
	live, err := file.PrintedContent(t.Context(), filepath.Join(folder(t, map[string]string{"all": printed}), "all"))
	if err != nil {
		t.Fatal(err)
	}
	all := func(rows int, columns ...string) file.KnownTable {
		return file.KnownTable{Rows: rows, All: true, Columns: columns}
	}
	for line, want := range map[string]file.KnownTable{
		"find ACL priority=1000":                    {Rows: 1},
		"find acl action=drop direction=from-lport": {Rows: 1},
		"list Logical_Switch_Port vm1":              {Rows: 1},
		"-f csv find ACL priority=1000":             {Rows: 1},
		"-f json find ACL priority=1000":            {Rows: 1},
		"--columns=_uuid,match,priority list ACL":   all(2, "_uuid", "match", "priority"),
		"--columns=_uuid,match,priority find ACL priority=1000": {Rows: 1,
			Columns: []string{"_uuid", "match", "priority"}},
		"--columns=match,_uuid,match -f csv list ACL":               all(2, "_uuid", "match"),
		"-f table --columns=_uuid,match,log list ACL":               all(2, "_uuid", "log", "match"),
		"-f json --columns=priority,_uuid list ACL":                 all(2, "_uuid", "priority"),
		"--data=json --columns=_uuid,match list ACL":                all(2, "_uuid", "match"),
		"--bare --columns=_uuid,name,type list Logical_Switch_Port": all(2, "_uuid", "name", "type"),
		"--bare --columns=_uuid,ports,name list Logical_Switch":     all(1, "_uuid", "name", "ports"),
		"--bare --columns=_uuid,addresses,name list Logical_Switch_Port": all(2, "_uuid",
			"name"), // a set of strings can't be told without quotes
		"--no-headings -f csv --columns=_uuid,match list ACL": all(2, "_uuid", "match"),
		"-d bare list Logical_Switch": all(1, "_uuid", "acls", "load_balancer",
			"load_balancer_group", "name", "ports", "qos_rules"),
	} {
		known, rows, lost := partOf(t, workdir.NB,
			"Here:\n\n[root@n1 ~]# ovn-nbctl "+line+"\n"+central.Nbctl(strings.Fields(line)...)+"[root@n1 ~]# ovs-vsctl show\n"+
				shownBridges)
		if len(known) != 1 {
			t.Errorf("%s: known of %v", line, known)
			continue
		}
		for table, one := range known {
			expect.Equal(t, one, want, line)
			expect.Equal(t, strings.Contains(lost,
				"of the table "+table+" of the OVN NB database, a part was printed: "+one.String()), true, line+": "+lost)
			printed := rows.Rows(table)
			expect.Equal(t, len(printed), want.Rows, line)
			for _, row := range printed {
				at := slices.IndexFunc(live.Rows(table), func(r ovsdb.Row) bool { return r.UUID == row.UUID })
				if at < 0 {
					t.Errorf("%s: no row %s of %s in the database", line, row.UUID, table)
					continue
				}
				for _, column := range one.Columns {
					expect.Equal(t, fmt.Sprint(row.Strings(column), row.UUIDs(column)),
						fmt.Sprint(live.Rows(table)[at].Strings(column), live.Rows(table)[at].UUIDs(column)), line+": "+column)
				}
			}
		}
	}
}

const (
	uuidA = "5e88ab00-c772-4846-8bc5-cd28197846c1"
	uuidB = "5e88ab00-c772-4846-8bc5-cd28197846c2"
)

// TestPartsTogether checks what is known of a table of which several outputs print a part, of rows that contradict
// each other, and of text that is no such output.
func TestPartsTogether(t *testing.T) {
	row := func(uuid, more string) string { return "_uuid               : " + uuid + "\n" + more }
	for name, c := range map[string]struct {
		text string
		want file.KnownTable
		rows string // the names, and the priorities
	}{
		"two conditions": {"# ovn-nbctl find ACL name=a\n" +
			row(uuidA, "name                : a\npriority            : 1\n") + "# ovn-nbctl find ACL name=b\n" +
			row(uuidB, "name                : b\npriority            : 2\n"),
			file.KnownTable{Rows: 2}, "a 1 b 2"},
		"columns and a row": {"# ovn-nbctl --columns=_uuid,name list ACL\n" +
			row(uuidA, "name                : a\n\n") + row(uuidB, "name                : b\n") +
			"# ovn-nbctl find ACL name=b\n" + row(uuidB, "name                : b\npriority            : 2\n"),
			file.KnownTable{Rows: 2, All: true, Columns: []string{"_uuid", "name"}}, "a 0 b 2"},
		"a row twice with different values": {"# ovn-nbctl --columns=_uuid,name,priority list ACL\n" +
			row(uuidA, "name                : a\npriority            : 1\n\n") + row(uuidA,
			"name                : a\npriority            : 2\n"),
			file.KnownTable{Rows: 1, All: true, Columns: []string{"_uuid", "name", "priority"}}, "a 2"},
		"a column twice with different values": {"# ovn-nbctl --columns=_uuid,name,name list ACL\n" +
			row(uuidA, "name                : a\nname                : b\n"),
			file.KnownTable{Rows: 1, All: true, Columns: []string{"_uuid"}}, " 0"},
		"without UUIDs": {"# ovn-nbctl --columns=name,priority list ACL\nname                : a\npriority            : 1\n\nname                : a\npriority            : 1\n",
			file.KnownTable{Rows: 2, All: true, Columns: []string{"name", "priority"}, Unnamed: true}, "a 1 a 1"},
		"a table without rows": {"# ovn-nbctl --columns=_uuid,name list ACL\n",
			file.KnownTable{All: true}, ""},
		"a row that is cut": {"# ovn-nbctl --columns=_uuid,name,priority list ACL\n" +
			row(uuidA, "name                : a\npriority            : 1\n\n") + row(uuidB, "name                : b\n"),
			file.KnownTable{Rows: 1, Columns: []string{"_uuid", "name", "priority"}}, "a 1"},
		"rows that a person left out": {"# ovn-nbctl list ACL\n" +
			row(uuidA, "name                : a\npriority            : 1\n") + "...\n",
			file.KnownTable{Rows: 1, Columns: []string{"_uuid", "name", "priority"}}, "a 1"},
		"rows of which a program left lines out": {"# ovn-nbctl list ACL | head -3\n" +
			row(uuidA, "name                : a\npriority            : 1\n"),
			file.KnownTable{Rows: 1, Columns: []string{"_uuid", "name", "priority"}}, "a 1"},
	} {
		known, rows, _ := partOf(t, workdir.NB, c.text+"# ovs-vsctl show\n"+shownBridges)
		expect.Equal(t, known["ACL"], c.want, name)
		got := ""
		for _, row := range rows.Rows("ACL") {
			priority, _ := row.Int("priority")
			got += fmt.Sprintf(" %s %d", row.String("name"), priority)
		}
		expect.Equal(t, strings.TrimPrefix(got, " "), c.rows, name)
	}
	for _, text := range []string{"We ran ovn-nbctl find ACL name=a and saw nothing.\n",
		"# ovn-nbctl --bare --columns=_uuid,name list ACL\nno connection\nname\n",
		"# ovn-nbctl find ACL name=a\novn-nbctl: no table\n"} {
		if known, _, _ := partOf(t, workdir.NB, text+"# ovs-vsctl show\n"+shownBridges); len(known) > 0 {
			t.Errorf("%q: %v", text, known)
		}
	}
}

// TestPartsBesideWholeTables checks that a part of a table is not used where the whole table is there.
func TestPartsBesideWholeTables(t *testing.T) {
	whole := "# ovn-nbctl list Logical_Switch\n" + listedSwitch + "# ovn-nbctl list Logical_Switch_Port\n" + listedPort
	known, _, _ := partOf(t, workdir.NB, whole+
		"# ovn-nbctl --columns=_uuid,name list logical-switch\n_uuid               : "+uuidA+
		"\nname                : other\n")
	expect.Equal(t, len(known), 0, known)
	known, _, lost := partOf(t, workdir.NB,
		whole+"# ovn-nbctl find ACL name=a\n_uuid               : "+uuidA+"\nname                : a\n")
	expect.Equal(t, len(known), 1, known)
	expect.Equal(t, strings.Contains(lost, "`ovn-nbctl list ACL`"), true, lost)
}

// TestManyPartRows checks that many rows, and many outputs of one row, are read in linear time.
func TestManyPartRows(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100,000 rows")
	}
	var rows, outputs strings.Builder
	rows.WriteString("# ovn-nbctl --columns=_uuid,name list ACL\n")
	for i := range 100_000 {
		fmt.Fprintf(&rows, "_uuid               : %s\nname                : a%d\n\n", ovsdb.UUIDOf(fmt.Sprint(i)), i)
	}
	for i := range 2_000 {
		fmt.Fprintf(&outputs, "# ovn-nbctl find ACL name=a%d\n_uuid               : %s\nname                : a%d\n", i,
			uuidA, i)
	}
	known, _, _ := partOf(t, workdir.NB, rows.String())
	expect.Equal(t, known["ACL"].Rows, 100_000)
	known, _, _ = partOf(t, workdir.NB, outputs.String())
	expect.Equal(t, known["ACL"].Rows, 1)
}
