package file

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/test/ovs"
)

// transactionsOf reads all transactions of a file.
func transactionsOf(t *testing.T, file string, wanted Selection) ([]*Transaction, *Log) {
	t.Helper()
	log, err := OpenLog(t.Context(), file, wanted)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var list []*Transaction
	for {
		next, err := log.Next()
		if err == io.EOF {
			return list, log
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, next)
	}
}

// moment is what a live server held after the commands with a number.
type moment struct {
	commands int
	content  string
}

// northbound runs 300 ovn-nbctl commands on a new OVN NB database, and returns its file as
// the live server leaves it, and what the server held at some moments.
func northbound(t *testing.T, clustered bool) (file string, moments []moment) {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovn-nbctl")
	dir := ovs.Dir(t)
	file = filepath.Join(dir, "ovnnb_db.db")
	if clustered {
		run(t, "ovsdb-tool", "create-cluster", file, ovs.NBSchema, "unix:"+filepath.Join(dir, "raft"))
	} else {
		run(t, "ovsdb-tool", "create", file, ovs.NBSchema)
	}
	s := serve(t, file)
	s.content(t, ovsdb.NB) // waits until a cluster's member is connected
	for i, command := range northboundCommands() {
		run(t, append([]string{"ovn-nbctl", "--timeout=20", "--db=" + s.remote}, command...)...)
		if i%60 == 0 {
			moments = append(moments, moment{i + 1, s.content(t, ovsdb.NB)})
		}
	}
	s.stop()
	return file, moments
}

// northboundCommands returns commands that change scalars, sets, maps and references, and
// whose texts need quotes.
func northboundCommands() [][]string {
	list := [][]string{{"init"}}
	for i := range 30 {
		sw, port := fmt.Sprintf("sw%d", i), fmt.Sprintf("sw%d-port", i)
		list = append(list,
			[]string{"ls-add", sw},
			[]string{"lsp-add", sw, port},
			[]string{"lsp-set-addresses", port, fmt.Sprintf("0a:00:00:00:00:%02x 10.0.0.%d", i, i+1), "unknown"},
			[]string{"acl-add", sw, "to-lport", "1000", fmt.Sprintf(`outport == "%s" && ip4 && tcp.dst == {80, 443}`, port), "drop"},
			[]string{"set", "logical_switch_port", port, `external_ids:"neutron:port_name"=web`, "enabled=false"},
			[]string{"set", "logical_switch_port", port, `external_ids:"neutron:port_name"="a, b=\"c\""`, "tag=7", "--", "set", "nb_global", ".", fmt.Sprintf("nb_cfg=%d", i+1)},
			[]string{"lsp-set-addresses", port, "dynamic"},
			[]string{"set", "logical_switch", sw, fmt.Sprintf("name=renamed%d", i)},
			[]string{"acl-del", "renamed" + fmt.Sprint(i)},
			[]string{"lsp-del", port})
	}
	return list
}

// TestLogIsThatOfOvsdbTool compares the transactions of real databases, whose ends were cut
// off, with what `ovsdb-tool show-log -mm` prints, and the databases of some moments with
// what the live server held then.
func TestLogIsThatOfOvsdbTool(t *testing.T) {
	for _, clustered := range []bool{false, true} {
		file, moments := northbound(t, clustered)
		printed := showLog(t, file)
		size := int64(len(read(t, file)))
		torn := write(t, append(read(t, file), read(t, file)[:200]...))
		if err := os.Truncate(torn, size+150); err != nil {
			t.Fatal(err)
		}
		list, log := transactionsOf(t, torn, Selection{})
		if len(list) != len(northboundCommands()) || len(list) != len(printed) {
			t.Fatalf("clustered %v: %d transactions, ovsdb-tool prints %d", clustered, len(list), len(printed))
		}
		for i, transaction := range list {
			if got := asShowLog(transaction); got != printed[i] {
				t.Fatalf("clustered %v, transaction %d:\n%s\novsdb-tool prints:\n%s", clustered, i, got, printed[i])
			}
		}
		if remarks := strings.Join(log.Remarks(), "\n"); !strings.Contains(remarks, fmt.Sprint("offset ", size)) && !strings.Contains(remarks, "150 bytes") {
			t.Errorf("clustered %v: the cut-off end is not described: %q", clustered, remarks)
		}
		for _, m := range moments {
			dst := filepath.Join(t.TempDir(), "then.db")
			if _, _, err := StandaloneAt(t.Context(), torn, dst, list[m.commands-1].Number); err != nil {
				t.Fatal(err)
			}
			s := serve(t, dst)
			if content := s.content(t, ovsdb.NB); content != m.content {
				t.Errorf("clustered %v: after %d commands the live server held\n%s\nand the file of then has\n%s", clustered, m.commands, m.content, content)
			}
			s.stop()
		}
	}
}

var (
	shownRecord = regexp.MustCompile(`(?m)^(?:record \d+:)? ?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) "(.*)"$`)
	shownRow    = regexp.MustCompile(`^  table (\S+) (insert row|row) .*?\(?([0-9a-f]{8})\)?(?: diff)?:$`)
)

// showLog returns each transaction that `ovsdb-tool show-log -mm` prints, in the form of
// asShowLog.
func showLog(t *testing.T, file string) []string {
	t.Helper()
	text := run(t, "ovsdb-tool", "show-log", "-mm", file)
	var list []string
	var rows []string
	end := func() {
		if len(list) > 0 {
			slices.Sort(rows)
			list[len(list)-1] += strings.Join(rows, "")
		}
		rows = nil
	}
	var columns []string
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if m := shownRecord.FindStringSubmatch(line); m != nil {
			end()
			list = append(list, m[1]+" "+m[2]+"\n")
			continue
		}
		if m := shownRow.FindStringSubmatch(line); m != nil {
			rows, columns = append(rows, m[1]+" "+m[2]+" "+m[3]+"\n"), nil
			continue
		}
		if strings.HasPrefix(line, "    ") && len(rows) > 0 {
			columns = append(columns, line+"\n")
			slices.Sort(columns)
			head, _, _ := strings.Cut(rows[len(rows)-1], "\n")
			rows[len(rows)-1] = head + "\n" + strings.Join(columns, "")
		}
	}
	end()
	return list
}

// asShowLog prints a transaction as ovsdb-tool does, in a fixed order.
func asShowLog(transaction *Transaction) string {
	var rows []string
	for _, c := range transaction.Changes {
		verb := "row"
		if c.Kind == Inserted {
			verb = "insert row"
		}
		row := fmt.Sprintf("%s %s %.8s\n", c.Table, verb, c.UUID)
		if c.Kind == Deleted {
			rows = append(rows, row+"    delete row\n")
			continue
		}
		for _, column := range c.Columns {
			row += "    " + column.Column + "=" + shownValue(column) + "\n"
		}
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return transaction.Time.Format("2006-01-02 15:04:05.000") + " " + transaction.Comment + "\n" + strings.Join(rows, "")
}

// shownValue returns the text of a column's change in the file: the new value, or the
// difference, which has the new value of a key that has one.
func shownValue(c ColumnChange) string {
	if c.Added == nil && c.Removed == nil {
		return c.New
	}
	elements := slices.Clone(c.Added)
	for _, removed := range c.Removed {
		key, _, pair := strings.Cut(removed, "=")
		if !slices.ContainsFunc(c.Added, func(added string) bool { return pair && strings.HasPrefix(added, key+"=") }) {
			elements = append(elements, removed)
		}
	}
	slices.Sort(elements)
	if strings.HasSuffix(c.Column, "_ids") {
		return "{" + strings.Join(elements, ", ") + "}"
	}
	return "[" + strings.Join(elements, ", ") + "]"
}
