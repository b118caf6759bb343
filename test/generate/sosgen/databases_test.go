package sosgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/lines"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// TestDatabasesServeTheLiveRows collects the databases of a live node in every form
// in which they occur, and compares the rows of the replica with the live ones. Outside of a sweep, only the NB
// database has each form: a form is read by the same code whatever the tables.
func TestDatabasesServeTheLiveRows(t *testing.T) {
	n := recorded(t, "openstack")
	cleaner := n.NewCleaner()
	for _, db := range []struct {
		name string
		kind workdir.Kind
		verb string
	}{{NB, workdir.NB, "collect-db-ovn-nb"}, {SB, workdir.SB, "collect-db-ovn-sb"}, {OVS, workdir.OVS, "collect-db-ovs"}} {
		members := Cluster(t, n.Databases[db.name], db.name)
		backup, err := n.Backup(db.name)
		if err != nil {
			t.Fatal(err)
		}
		live, err := n.Rows(db.name)
		if err != nil {
			t.Fatal(err)
		}
		plain := n.Databases[db.name]
		forms := map[string]struct {
			file  []byte
			rows  []byte
			words string // that the messages must hold
		}{
			"as it is":                           {plain, live, ""},
			"compressed":                         {Gzip(plain), live, ""},
			"backup":                             {backup, live, ""},
			"cleaned":                            {cleaner.Clean(plain), cleaner.Clean(live), "damaged"},
			"cluster leader":                     {members.Leader, live, "cluster"},
			"cluster follower, compressed":       {Gzip(members.Follower), live, "cluster"},
			"cluster leader, cleaned":            {cleaner.Clean(members.Leader), cleaner.Clean(live), "damaged"},
			"cluster, pending and replaced":      {WithUncommitted(members.Leader, db.name, false), live, "replaced"},
			"cluster, pending, replaced, torn":   {WithUncommitted(members.Leader, db.name, true), live, "replaced"},
			"cluster follower, pending and torn": {WithUncommitted(members.Follower, db.name, true), live, "replaced"},
		}
		names := slices.Sorted(maps.Keys(forms))
		if db.name != NB {
			names = sweep.Named(t, names, func(name string) string { return name }, "cleaned", "cluster leader")
		}
		for _, what := range names {
			c := forms[what]
			t.Run(db.name+" "+what, func(t *testing.T) {
				t.Parallel()
				dir := write(t, Tree{"leader_db": {Body: c.file}})
				for _, verb := range []string{"collect", db.verb} {
					wd := shortDir(t)
					o := run(t, verb, "-w", wd, filepath.Join(dir, "leader_db"))
					if o.code == 1 {
						t.Errorf("%s: %s", verb, o.err)
						continue
					}
					r := start(t, wd, o)
					sameRows(t, n, c.rows, "unix:"+r.serving(db.kind), db.name)
					if !strings.Contains(r.words(), c.words) {
						t.Errorf("%s: no message holds %q: %s", verb, c.words, r.words())
					}
				}
			})
		}
		t.Run(db.name+" that can't be served", func(t *testing.T) {
			for what, c := range map[string]struct {
				file  []byte
				words []string
			}{
				"join-only": {members.JoinOnly, []string{"join", "member"}},
				"tail":      {Tail(plain, len(plain)/2), []string{"--all-logs"}},
				"empty":     {nil, []string{"empty"}},
				"a text":    {[]byte("tar: removing leading '/' from member names\n"), []string{"leader_db"}},
			} {
				path := filepath.Join(write(t, Tree{"leader_db": {Body: c.file}}), "leader_db")
				refused(t, c.words, path)
				if o := run(t, db.verb, "-w", shortDir(t), path); o.code != 1 || !containsAll(o.err, c.words) {
					t.Errorf("%s of %s: %d %s", db.verb, what, o.code, o.err)
				}
			}
		})
		t.Run(db.name+" torn", func(t *testing.T) {
			// Only the last transaction is lost, and a message says so.
			r := replay(t, filepath.Join(write(t, Tree{"x": {Body: Torn(plain)}}), "x"))
			if r.report.Strict() && r.collected.err == "" {
				t.Error("no message about the torn record")
			}
			have := rows(t, n, "unix:"+r.serving(db.kind), db.name)
			if len(have) < len(rowsOf(t, live))/2 {
				t.Errorf("%d rows of %d", len(have), len(rowsOf(t, live)))
			}
		})
	}
	t.Run("the wrong command", func(t *testing.T) {
		path := filepath.Join(write(t, Tree{"x": {Body: n.Databases[NB]}}), "x")
		if o := run(t, "collect-db-ovn-sb", "-w", shortDir(t), path); o.code != 1 ||
			!strings.Contains(o.err, "collect-db-ovn-nb") {
			t.Errorf("%d %s", o.code, o.err)
		}
	})
}

// serving returns the socket of the database as it was recorded.
func (r *replica) serving(kind workdir.Kind) string {
	if kind == workdir.OVS {
		return r.Workdir.RecordedSocket() // the other socket is that of ovs-vswitchd's database
	}
	return r.Workdir.Socket(kind)
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// rows returns all rows that a server has of a database.
func rows(t *testing.T, n *Node, remote, database string) []string {
	t.Helper()
	return rowsOf(t, dumpOf(t, remote, database), ephemeral(t, n, database)...)
}

// dumpOf returns what a server prints of all rows of a database.
func dumpOf(t *testing.T, remote, database string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ovsdb-client", ovs.Timeout(), "-f", "json", "dump", remote,
		database).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", remote, err, out)
	}
	return out
}

// ephemeral returns the columns that a database file does not hold, as
// "Table.column". (The schema in a cluster's file marks none.)
func ephemeral(t *testing.T, n *Node, database string) []string {
	t.Helper()
	_, bodies := records(n.Databases[database])
	var schema struct {
		Tables map[string]struct {
			Columns map[string]struct{ Ephemeral bool }
		}
	}
	if err := json.Unmarshal(bodies[0], &schema); err != nil {
		t.Fatal(err)
	}
	var list []string
	for table, content := range schema.Tables {
		for name, c := range content.Columns {
			if c.Ephemeral {
				list = append(list, table+"."+name)
			}
		}
	}
	return list
}

// rowsOf reads the output of `ovsdb-client -f json dump`, one line per table, into one
// line per row, without the columns in out.
func rowsOf(t *testing.T, dump []byte, out ...string) []string {
	t.Helper()
	var list []string
	for d := json.NewDecoder(bytes.NewReader(dump)); d.More(); {
		var table struct {
			Caption  string
			Headings []string
			Data     [][]json.RawMessage
		}
		if err := d.Decode(&table); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(table.Caption, " table")
		for _, r := range table.Data {
			line := name
			for i, value := range r {
				if !slices.Contains(out, name+"."+table.Headings[i]) {
					line += fmt.Sprintf(" %s=%s", table.Headings[i], sorted(value))
				}
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return list
}

// sorted sorts the elements of a set or a map. The server orders them by value, and
// sos clean changes values.
func sorted(value json.RawMessage) string {
	var kind string
	var elements []json.RawMessage
	if err := json.Unmarshal(value, &[]any{&kind, &elements}); err != nil || kind != "set" && kind != "map" {
		return string(value)
	}
	slices.SortFunc(elements, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return fmt.Sprintf("%s %s", kind, elements)
}

// sameRows compares the rows that a server has with a dump of the live database.
func sameRows(t *testing.T, n *Node, live []byte, remote, database string) {
	t.Helper()
	want, have := rowsOf(t, live, ephemeral(t, n, database)...), rows(t, n, remote, database)
	if len(want) == 0 {
		t.Fatal("the live database had no rows")
	}
	missing, extra := lines.Difference(want, have)
	if len(missing)+len(extra) > 0 {
		t.Errorf("of %d live rows, %d are missing and %d are extra:\n%.900q\n%.900q", len(want), len(missing), len(extra),
			missing, extra)
	}
}
