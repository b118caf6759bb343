package history

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/stdr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// serveNB starts a server on a new OVN NB database.
func serveNB(t *testing.T) (db string, s *ovs.Server) {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovn-nbctl")
	db = filepath.Join(ovs.Dir(t), "ovnnb_db.db")
	ovs.Run(t, "ovsdb-tool", "create", db, ovs.NBSchema)
	return db, ovs.Serve(t, db, "--unixctl="+db+".ctl")
}

// nbctl runs ovn-nbctl commands, each a transaction of its own.
func nbctl(s *ovs.Server, commands ...string) {
	for _, command := range commands {
		s.Run(append([]string{"ovn-nbctl", ovs.Timeout(), "--db=" + s.Remote}, strings.Fields(command)...)...)
	}
}

func northbound(db string, logs ...string) []Source {
	return []Source{{Title: "OVN NB", Schema: ovsdb.NB, File: db, Logs: logs}}
}

func read(t *testing.T, sources []Source, q Query) (events []*Event, results []Result) {
	t.Helper()
	results, err := Read(t.Context(), sources, q, func(e *Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, results
}

// commandsOf returns the ovn-nbctl commands in the comments of events.
func commandsOf(events []*Event) (commands []string) {
	for _, e := range events {
		_, command, _ := strings.Cut(e.Comment, "db.sock ")
		commands = append(commands, command)
	}
	return commands
}

func TestQueryFindsWhoChangedARow(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0", "lsp-add sw0 web", "lsp-add sw0 db", "lsp-set-addresses web dynamic",
		"set logical_switch_port db tag=4",
		"set logical_switch_port web name=www", "set logical_switch_port www external_ids:name=shop", "lsp-del www")
	s.Stop()
	all, results := read(t, northbound(db), Query{})
	if len(all) != 8 || results[0].Lost || results[0].Compacted || all[0].Program != "ovn-nbctl" {
		t.Fatalf("%d transactions, %+v", len(all), results)
	}
	uuid := ""
	for _, r := range all[1].Rows {
		if r.Name == "web" {
			uuid = r.UUID
		}
	}
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"a name that the row lost later": {Query{Record: "web"},
			[]string{"lsp-add sw0 web", "lsp-set-addresses web dynamic", "set logical_switch_port web name=www"}},
		"the beginning of a UUID": {Query{Record: uuid[:8]},
			[]string{"lsp-add sw0 web", "lsp-set-addresses web dynamic", "set logical_switch_port web name=www",
				"set logical_switch_port www external_ids:name=shop", "lsp-del www"}},
		"a name in external_ids": {Query{Record: "shop"},
			[]string{"set logical_switch_port www external_ids:name=shop", "lsp-del www"}},
		"a table": {Query{Table: "Logical_Switch"},
			[]string{"ls-add sw0", "lsp-add sw0 web", "lsp-add sw0 db", "lsp-del www"}},
		"a column":       {Query{Column: "tag"}, []string{"set logical_switch_port db tag=4"}},
		"from a time on": {Query{Since: all[6].Time}, commandsOf(all[6:])},
		"until a time":   {Query{Until: all[1].Time}, commandsOf(all[:2])},
		"nothing":        {Query{Record: "sw"}, nil},
	} {
		got, _ := read(t, northbound(db), c.q)
		expect.Equal(t, commandsOf(got), c.want, name)
	}
	renamed, _ := read(t, northbound(db), Query{Record: "web", Column: "name"})
	if c := renamed[1].Rows[0].Columns["name"]; c.Old != "web" || c.New != "www" || renamed[1].Rows[0].OldName != "web" {
		t.Errorf("%+v", renamed[1].Rows[0])
	}
}

// TestStateIsThatOfTheServer compares the rows of a moment with what the live server held.
func TestStateIsThatOfTheServer(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0", "lsp-add sw0 web", "set logical_switch_port web external_ids:a=b external_ids:c=d",
		"lsp-set-addresses web dynamic unknown",
		"remove logical_switch_port web external_ids a")
	then := s.Run("ovn-nbctl", "--db="+s.Remote, "list", "logical_switch_port")
	at := time.Now()
	nbctl(s, "lsp-set-addresses web unknown", "lsp-add sw0 db", "ls-add sw1", "lsp-del web")
	s.Stop()
	state, err := At(t.Context(), northbound(db)[0], Query{Table: "Logical_Switch_Port", Until: at})
	if err != nil || len(state.Rows) != 1 {
		t.Fatalf("%+v, %v", state, err)
	}
	for column, value := range state.Rows[0].Columns {
		if line := fmt.Sprintf("%-20s: %s\n", column, value.New); !strings.Contains(then, line) {
			t.Errorf("%q is not in what the server held:\n%s", line, then)
		}
	}
	if counts, err := At(t.Context(), northbound(db)[0], Query{Until: at}); err != nil ||
		counts.Tables["Logical_Switch_Port"] != 1 || counts.Tables["Logical_Switch"] != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	if _, err := At(t.Context(), northbound(db)[0], Query{Until: at.Add(-time.Hour)}); err == nil ||
		!strings.Contains(err.Error(), "holds no state of that time") {
		t.Error(err)
	}
}

// TestCompactedFileHoldsOneState compacts a database with the server's own command, changes
// it, and compacts it with ovsdb-tool.
func TestCompactedFileHoldsOneState(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0", "lsp-add sw0 web")
	s.Run("ovs-appctl", "-t", db+".ctl", "ovsdb-server/compact", ovsdb.NB)
	nbctl(s, "lsp-set-addresses web dynamic")
	s.Stop()
	events, results := read(t, northbound(db), Query{Record: "web"})
	if len(events) != 2 || !events[0].Base || events[0].Rows[0].Change != file.Present || events[1].Base ||
		results[0].Compacted {
		t.Errorf("%+v %+v", events, results)
	}
	ovs.Run(t, "ovsdb-tool", "compact", db)
	events, results = read(t, northbound(db), Query{})
	if len(events) != 1 || !events[0].Base || events[0].Count < 2 || !results[0].Compacted || results[0].Lost {
		t.Errorf("%+v %+v", events, results)
	}
}

// TestDamagedRecordIsLeftOut damages one record in the middle.
func TestDamagedRecordIsLeftOut(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0", "ls-add sw1", "ls-add sw2", "set logical_switch sw1 external_ids:a=b")
	s.Stop()
	raw, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte(`"sw1"`))
	offset := bytes.LastIndex(raw[:at], []byte("OVSDB "))
	raw[at] = 'x'
	if err := os.WriteFile(db, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	events, results := read(t, northbound(db), Query{})
	remarks := strings.Join(results[0].Remarks, "\n")
	if got := commandsOf(events); len(got) != 3 || !slices.Equal(got[:2], []string{"ls-add sw0", "ls-add sw2"}) ||
		len(events[2].Rows) > 0 || !strings.Contains(remarks,
		"1 change of a row that a record which was left out inserted: not shown") || !results[0].Lost ||
		!strings.Contains(remarks, fmt.Sprint("offset ", offset)) {
		t.Errorf("%q, %q", got, remarks)
	}
}

// TestDateAfterYear9999IsUnknown appends a record with a date that JSON has no place for.
func TestDateAfterYear9999IsUnknown(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0")
	s.Stop()
	raw, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"_date":253402300800000,"_comment":"late"}` + "\n"
	raw = fmt.Appendf(raw, "OVSDB JSON %d %x\n%s", len(body), sha1.Sum([]byte(body)), body)
	if err := os.WriteFile(db, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	events, _ := read(t, northbound(db), Query{})
	last := events[len(events)-1]
	if last.Comment != "late" || !last.Time.IsZero() || len(events) != 2 {
		t.Errorf("%d events, the last %+v", len(events), last)
	}
	if _, err := json.Marshal(events); err != nil {
		t.Error(err)
	}
}

// connect returns a client of libovsdb that logs as OVN-Kubernetes configures it
// (go-controller/pkg/libovsdb/libovsdb.go), with verbosity 4, its default on OpenShift.
func connect(t *testing.T, s *ovs.Server, out *bytes.Buffer) client.Client {
	t.Helper()
	stdr.SetVerbosity(4)
	logger := stdr.New(log.New(out, "", log.Ldate|log.Ltime|log.Lshortfile|log.LUTC))
	dbModel, err := model.NewClientDBModel(ovsdb.NB, map[string]model.Model{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewOVSDBClient(dbModel, client.WithEndpoint(s.Remote), client.WithLogger(&logger))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func transact(t *testing.T, c client.Client, operations ...rfc.Operation) []rfc.OperationResult {
	t.Helper()
	reply, err := c.Transact(t.Context(), operations...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestRequestsOfARealClient reads what a real client logged, in a rotated and a present
// file, and finds each transaction of the database in it.
func TestRequestsOfARealClient(t *testing.T) {
	db, s := serveNB(t)
	var out bytes.Buffer
	c := connect(t, s, &out)
	hostile := "web 1] Rows:[] Where:[where x == {y}] \x1b[31m\n\"end"
	uuid := transact(t, c,
		rfc.Operation{Op: "insert", Table: "Logical_Switch", Row: rfc.Row{"name": "sw0"}, UUIDName: "u1"},
		rfc.Operation{Op: "insert", Table: "Address_Set", Row: rfc.Row{"name": hostile}})[0].UUID.GoUUID
	rotated := files.Gzip(t, out.Bytes())
	out.Reset()
	where := []rfc.Condition{rfc.NewCondition("_uuid", rfc.ConditionEqual, rfc.UUID{GoUUID: uuid})}
	ids, err := rfc.NewOvsMap(map[string]string{"k": "v"})
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c, rfc.Operation{Op: "mutate", Table: "Logical_Switch", Where: where,
		Mutations: []rfc.Mutation{*rfc.NewMutation("external_ids", rfc.MutateOperationInsert, ids)}})
	transact(t, c, rfc.Operation{Op: "update", Table: "Logical_Switch", Where: where, Row: rfc.Row{"name": "renamed"}})
	transact(t, c, rfc.Operation{Op: "delete", Table: "Logical_Switch", Where: where})
	s.Stop()
	out.WriteString(strings.Split(out.String(), "\n")[0][:90]) // cut off
	logs := []string{filepath.Join(t.TempDir(), "libovsdb-2026-11-22T14-57-26.215.log.gz"),
		filepath.Join(t.TempDir(), "libovsdb.log")}
	for i, text := range [][]byte{rotated, out.Bytes()} {
		if err := os.WriteFile(logs[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	events, results := read(t, northbound(db, logs...), Query{})
	var seen []string
	for _, e := range events {
		for _, r := range e.Requests {
			seen = append(seen, r.Operation+" "+r.Table)
			if committed := e.Time.Sub(events[len(events)-1].Time).Abs(); committed > 10*time.Second {
				t.Errorf("%+v is %v from the last transaction", e, committed)
			}
		}
	}
	if want := []string{"insert Logical_Switch", "insert Address_Set", "mutate Logical_Switch", "update Logical_Switch",
		"delete Logical_Switch"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q, in\n%s", seen, want, out.String())
	}
	if remarks := fmt.Sprint(results); !results[1].Lost || !strings.Contains(remarks, "libovsdb.log, line 4") {
		t.Errorf("the line that is cut off is not described: %s", remarks)
	}
	ofRow, _ := read(t, northbound("", logs...), Query{Record: uuid[:8]})
	if len(ofRow) != 3 || ofRow[0].Requests[0].Mutations == "" || ofRow[1].Requests[0].Row != "name:renamed" ||
		ofRow[2].Log != "libovsdb.log:3" {
		t.Errorf("requests for %s: %+v", uuid, ofRow)
	}
	if named, _ := read(t, northbound("", logs...), Query{Record: "sw0"}); len(named) != 1 || named[0].Count != 2 ||
		len(named[0].Requests) != 1 {
		t.Errorf("%+v", named)
	}
}

// TestCtrlCEndsReading cancels after the first transaction.
func TestCtrlCEndsReading(t *testing.T) {
	db, s := serveNB(t)
	nbctl(s, "ls-add sw0", "ls-add sw1")
	s.Stop()
	f, err := os.OpenFile(db, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	last := raw[bytes.LastIndex(raw, []byte("OVSDB ")):]
	for range 5000 {
		if _, err := f.Write(last); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err = Read(ctx, northbound(db), Query{}, func(*Event) error {
		n++
		cancel()
		return nil
	})
	if err == nil || ctx.Err() == nil || n > 1000 {
		t.Errorf("%d transactions, %v", n, err)
	}
}

func TestTimesAreReadAsTheyArePrinted(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 57, 26, 215e6, time.FixedZone("", 3600))
	for _, text := range []string{timeText(at), "2026-11-22 14:57:26.215", "2026-11-22T14:57:26.215",
		at.Format(time.RFC3339Nano), at.UTC().Format(time.RFC3339Nano)} {
		if got, err := parseTime(text); err != nil || !got.Equal(at) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := parseTime("14:57"); err != nil || got.Year() != 0 || got.Hour() != 14 {
		t.Errorf("a time of day: %v, %v", got, err)
	}
	if _, err := parseTime("yesterday"); err == nil ||
		!regexp.MustCompile(`"yesterday" is not a time`).MatchString(err.Error()) {
		t.Error(err)
	}
}

func FuzzLogLine(f *testing.F) {
	f.Add(`2026/11/22 14:57:26 client.go:832: "level"=4 "msg"="transacting operations" "database"="OVN_Northbound" "operations"="[{Op:insert Table:T Row:map[name:a] Rows:[] Columns:[] Mutations:[] Timeout:<nil> Where:[] Until: Durable:<nil> Comment:<nil> Lock:<nil> UUID: UUIDName:u1} {Op:delete Table:T Row:map[] Rows:[] Columns:[] Mutations:[] Timeout:<nil> Where:[where column _uuid == {0190fe17-d1ae-7091-a034-22ade2121dc0}] Until: Durable:<nil> Comment:<nil> Lock:<nil> UUID: UUIDName:}]"`)
	f.Add(`2026/13/99 14:57:26 x:1: "msg"="transacting operations" "database"="x" "operations"="[{Op:wait Table: Row:"`)
	f.Add(`2026/11/22 14:57:26 client.go:1: "msg"="transacting operations" "database"="a" "operations"=[{"op":"insert"}]`)
	f.Add("\xff\x00")
	f.Fuzz(func(t *testing.T, line string) {
		l, ok, err := parseLine(line)
		if err == nil && ok && len(l.requests) == 0 {
			t.Fatalf("no request in %q", line)
		}
		size := 0
		for _, r := range l.requests {
			size += len(r.Operation) + len(r.Table) + len(r.Row) + len(r.Mutations) + len(r.Where)
			Query{Record: "name", Column: "c"}.wants(r)
		}
		if size > len(line) {
			t.Fatalf("%d bytes were made of %q", size, line)
		}
	})
}

func TestProgramOfAComment(t *testing.T) {
	for comment, want := range map[string]string{
		"ovn-northd": "ovn-northd", "ovn-controller\novn-controller: registering chassis 'n1'": "ovn-controller",
		"ovs-vsctl (invoked by sh): ovs-vsctl show": "ovs-vsctl",
		"ovn-nbctl: ls-add sw0":                     "ovn-nbctl", "maintenance": "", "by ovn-northd": "", "": "",
	} {
		expect.Equal(t, programOf(comment), want, comment)
	}
}
