package file

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// transactionsOf reads all transactions of a file.
func transactionsOf(t *testing.T, file string, wanted Selection) ([]*Transaction, *Log) {
	t.Helper()
	wanted.Names, wanted.NamedBy = func(_ string,
		row ovsdb.Row) []string {
		return []string{row.String("name") + row.String("match")}
	}, []string{"name", "match"}
	log, err := OpenLog(t.Context(), nil, file, wanted)
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

// northbound runs ovn-nbctl commands on a new OVN NB database, and returns its file as
// the live server leaves it, and what the server held at six moments.
func northbound(t *testing.T, clustered bool) (file string, moments []moment) {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovn-nbctl")
	dir := ovs.Dir(t)
	file = filepath.Join(dir, "ovnnb_db.db")
	if clustered {
		ovs.Run(t, "ovsdb-tool", "create-cluster", file, ovs.NBSchema, "unix:"+filepath.Join(dir, "raft"))
	} else {
		ovs.Run(t, "ovsdb-tool", "create", file, ovs.NBSchema)
	}
	s := serve(t, file)
	s.content(t, ovsdb.NB) // waits until a cluster's member is connected
	commands := northboundCommands()
	for i, command := range commands {
		ovs.Run(t, append([]string{"ovn-nbctl", ovs.Timeout(), "--db=" + s.remote}, command...)...)
		if i%(len(commands)/5) == 0 {
			moments = append(moments, moment{i + 1, s.content(t, ovsdb.NB)})
		}
	}
	s.stop()
	return file, moments
}

// northboundCommands returns 61 commands, and in a sweep 301, that change scalars, sets, maps and references, and
// whose texts need quotes.
func northboundCommands() [][]string {
	list := [][]string{{"init"}}
	for i := range sweep.Count(30, 6) {
		sw, port := fmt.Sprintf("sw%d", i), fmt.Sprintf("sw%d-port", i)
		list = append(list,
			[]string{"ls-add", sw},
			[]string{"lsp-add", sw, port},
			[]string{"lsp-set-addresses", port, fmt.Sprintf("0a:00:00:00:00:%02x 10.0.0.%d", i, i+1), "unknown"},
			[]string{"acl-add", sw, "to-lport", "1000", fmt.Sprintf(`outport == "%s" && ip4 && tcp.dst == {80, 443}`, port),
				"drop"},
			[]string{"set", "logical_switch_port", port, `external_ids:"neutron:port_name"=web`, "enabled=false"},
			[]string{"set", "logical_switch_port", port, `external_ids:"neutron:port_name"="a, b=\"c\""`, "tag=7", "--", "set",
				"nb_global", ".", fmt.Sprintf("nb_cfg=%d", i+1)},
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
		numbered := ovs.Run(t, "ovsdb-tool", "show-log", file)
		for i, transaction := range list {
			if line := fmt.Sprintf("record %d: %s ", transaction.Number,
				transaction.Time.Format("2006-01-02 15:04:05.000")); !clustered && !strings.Contains(numbered, line) {
				t.Errorf("ovsdb-tool does not print %q:\n%s", line, numbered)
			}
			if got := asShowLog(transaction); got != printed[i] {
				t.Fatalf("clustered %v, transaction %d:\n%s\novsdb-tool prints:\n%s", clustered, i, got, printed[i])
			}
		}
		if remarks := strings.Join(log.Remarks(), "\n"); !strings.Contains(remarks, fmt.Sprint("offset ", size)) &&
			!strings.Contains(remarks, "150 bytes") {
			t.Errorf("clustered %v: the cut-off end is not described: %q", clustered, remarks)
		}
		for _, m := range moments {
			dst := filepath.Join(t.TempDir(), "then.db")
			if _, _, err := StandaloneAt(t.Context(), torn, dst, list[m.commands-1].Number); err != nil {
				t.Fatal(err)
			}
			s := serve(t, dst)
			if content := s.content(t, ovsdb.NB); content != m.content {
				t.Errorf("clustered %v: after %d commands the live server held\n%s\nand the file of then has\n%s", clustered,
					m.commands, m.content, content)
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
	text := ovs.Run(t, "ovsdb-tool", "show-log", "-mm", file)
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

// TestLogHasOnlyCommittedEntries reads a cluster's log of which a real ovsdb-server serves
// the same (TestReplacedEntriesAreLeftOut), with one more entry that was never committed.
func TestLogHasOnlyCommittedEntries(t *testing.T) {
	file, s := clustered(t)
	root := rootUUID(t, s)
	s.stop()
	n, term := lastIndex(t, file)
	before, _ := transactionsOf(t, file, Selection{})
	list, log := transactionsOf(t, write(t, read(t, file),
		entry(n+1, term, root, "stale1"), entry(n+2, term, root, "stale2"), entry(n+3, term, root, "stale3"),
		entry(n+1, term+1, root, "kept1"), entry(n+2, term+1, root, "pended"),
		entry(n+2, term+2, root, "kept2"), commit(n+2), entry(n+3, term+2, root, "later")), Selection{})
	var added []string
	for _, transaction := range list[len(before):] {
		added = append(added, fmt.Sprint(transaction.Number-int64(n), transaction.Changes[0].Columns[0].Added))
	}
	expect.Equal(t, added, []string{"1 [kept1=x]", "2 [kept2=x]"})
	wantRemark(t, log.Remarks(), "1 entry", "not committed yet")
	if log.Lost() {
		t.Error("an entry that was not committed counts as lost")
	}
}

// TestLogGoesOnAfterASchemaConversion converts the schema of a live cluster.
func TestLogGoesOnAfterASchemaConversion(t *testing.T) {
	file, s := clustered(t)
	schema := regexp.MustCompile(`"version": "[^"]*"`).ReplaceAll(read(t, ovsSchema), []byte(`"version": "99.0.0"`))
	schema = regexp.MustCompile(`"cksum": "[^"]*",`).ReplaceAll(schema, nil)
	ovs.Run(t, "ovsdb-client", ovs.Timeout(), "convert", s.remote, write(t, schema))
	s.vsctl(t, "set bridge br-int external_ids:a=b")
	then := s.content(t, ovsdb.OVS)
	s.vsctl(t, "del-br br-int")
	s.stop()
	list, _ := transactionsOf(t, file, Selection{})
	conversion, change, end := list[len(list)-3], list[len(list)-2], list[len(list)-1]
	if conversion.Schema != "99.0.0" || !conversion.Base || len(conversion.Changes) > 0 || conversion.Rows < 8 {
		t.Errorf("got %+v, want a conversion to the schema 99.0.0", conversion)
	}
	if c := change.Changes[0]; c.Kind != Modified || c.Names[0] != "br-int" ||
		!slices.Equal(c.Columns[0].Added, []string{"a=b"}) {
		t.Errorf("got %+v, want that br-int got a=b", c)
	}
	if i := slices.IndexFunc(end.Changes, func(c Change) bool {
		return c.Kind == Deleted && c.Table == "Bridge" &&
			c.OldNames[0] == "br-int"
	}); i < 0 {
		t.Errorf("got %+v, want that br-int was deleted", end)
	}
	dst := filepath.Join(t.TempDir(), "then.db")
	if _, _, err := StandaloneAt(t.Context(), file, dst, change.Number); err != nil {
		t.Fatal(err)
	}
	differ(t, served(t, dst), then)
}

// TestLogReadsWhatFileHoldsInPieces reads files whose content is in a large record, which is
// not held in memory, and in a gzip stream.
func TestLogReadsWhatFileHoldsInPieces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sb.db")
	writeLarge(t, file, 20)
	body := []byte(`{"_date":1760000000000,"_comment":"compacting database online","Logical_Flow":{`)
	for i := range 70000 {
		body = fmt.Appendf(body, `"%08x-1111-4000-8000-000000000000":{"match":"m%d","priority":%d},`, i, i, i)
	}
	body = append(body[:len(body)-1], "}}\n"...)
	schema := split(t, file)[0]
	change := rec("JSON", `{"_date":1760000000001,"_is_diff":true,"Logical_Flow":{"00000007-1111-4000-8000-000000000000":{"priority":8},"00000008-1111-4000-8000-000000000000":null}}`)
	if len(body) < large {
		t.Fatal("the record is not large")
	}
	text := slices.Concat(schema, formatHeader("JSON", body), body, change)
	for name, path := range map[string]string{"plain": write(t, text), "gzip": write(t, files.Gzip(t, text))} {
		list, log := transactionsOf(t, path, Selection{})
		if len(list) != 2 || !list[0].Base || list[0].Rows != 70000 || list[0].Comment != "compacting database online" ||
			len(log.Remarks()) > 0 {
			t.Fatalf("%s: %d, %q", name, len(list), log.Remarks())
		}
		if c := list[1].Changes; len(c) != 2 || c[0].Names[0] != "m7" || c[0].Columns[0].Old != "7" ||
			c[0].Columns[0].New != "8" || c[1].Kind != Deleted || c[1].OldNames[0] != "m8" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// FuzzLog reads transactions of any text.
func FuzzLog(f *testing.F) {
	schema := `{"name":"X","version":"1.0.0","tables":{"T":{"columns":{"name":{"type":"string"},"s":{"type":{"key":"string","min":0,"max":"unlimited"}},` +
		`"m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}`
	f.Add(`{"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"name":"a","s":["set",["x"]],"m":["map",[["a","b"]]]}},"_date":1,"_comment":"c"}`,
		`{"_is_diff":true,"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"s":["set",["x","y"]],"m":["map",[["a","c"]]]}}}`)
	f.Add(`{"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":null}}`,
		`{"T":{"0190fe17-d1ae-7091-a034-22ade2121dc0":{"s":[[],{}]}},"_date":"x","_comment":7}`)
	f.Add(`{"T":7}`, `{"T":{"x":{}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		text := slices.Concat(rec("JSON", schema), rec("JSON", one), rec("JSON", two))
		list, log := transactionsOf(t, write(t, text), Selection{Base: true})
		_ = log.Remarks()
		for _, transaction := range list {
			if transaction.Rows < len(transaction.Changes) {
				t.Fatalf("%+v", transaction)
			}
		}
	})
}

// TestLogMemoryDoesNotGrowWithTransactions changes the same hundred rows again and again.
func TestLogMemoryDoesNotGrowWithTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads a large file")
	}
	text := rec("JSON", `{"name":"X","version":"1.0.0","tables":{"T":{"columns":{"name":{"type":"string"},"s":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}`)
	const transactions = 40000
	for i := range transactions {
		element := i / 200 // an element is added, and then removed
		text = append(text, rec("JSON", fmt.Sprintf(`{"_is_diff":true,"T":{"%08x-0000-4000-8000-000000000000":{"name":"n%d","s":["set",["element %d"]]}}}`, i%100, i, element))...)
	}
	log, err := OpenLog(t.Context(), nil, write(t, text), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text = nil
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early uint64
	for i := range transactions {
		if _, err := log.Next(); err != nil {
			t.Fatal(err)
		}
		if i == transactions/4 {
			early = heap()
		}
	}
	if late := heap(); late > early+1<<18 {
		t.Errorf("%d bytes after a quarter of the transactions, %d after all", early, late)
	}
}
