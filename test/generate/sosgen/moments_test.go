package sosgen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/cmd"
	replicas "ovs-offline/replica"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

const (
	workerReport  = "../../../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"
	computeReport = "../../../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"
	sbFile        = "var/lib/ovn/etc/ovnsb_db.db"
)

// otherDatabase is a southbound database that may not be that of the node's flows.
type otherDatabase struct {
	what    string
	content []byte // nil for none
	said    string // by start and by the trust line of trace; "" if it is the node's own
	exit    int    // of start and trace
}

// otherDatabases returns the southbound database of the worker, older and damaged ones, and
// those of others. The worker's history takes 33 s: a state without the last transactions
// stands for minutes, and one with few of the logical flows for days.
func otherDatabases(t *testing.T, own []byte) []otherDatabase {
	t.Helper()
	wd := shortDir(t)
	collectInto(t, wd, workerReport)
	at := func(when string) []byte {
		folder := filepath.Join(t.TempDir(), "then")
		if o := run(t, "history", "-w", wd, "--at", when, "--save", folder); o.code != 0 {
			t.Fatal(o.err)
		}
		return []byte(files.Read(t, filepath.Join(folder, "ovnsb_db.db")))
	}
	flipped := append([]byte{}, own...)
	flipped[len(own)/2] ^= 1
	const other, moment = "of another deployment, zone or time than the flows", "of another moment than the flows"
	return []otherDatabase{
		{"own", own, "", 0},
		{"minutes older", at("2026-11-21T09:10:52Z"), moment + " (its last transaction is of 2026-11-21 09:10:", 3},
		{"days older", at("2026-11-21T09:10:44Z"), other, 3},
		{"of another zone", sb(t, computeReport), other, 3},
		{"of another release", release(t), other, 3},
		{"cut in half", own[:len(own)/2], "cut off after", 3},
		{"one bit flipped", flipped, "contradicts others", 3},
		{"gzip in gzip", Gzip(Gzip(own)), "", 0},
		{"an error message", []byte("error: unable to upgrade connection: container not found (\"sbdb\")\n"),
			"error: unable to upgrade", 3},
		{"absent", nil, "no OVN SB database", 0},
	}
}

// TestOtherDatabasesAreNamed collects the flows of a node with each of these databases, as a sos
// report, a must-gather and single files. start and the trust line of trace name what is wrong,
// with exit code 3, and say nothing of the node's own. drift says it first.
func TestOtherDatabasesAreNamed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	report := unpacked(t, workerReport)
	tops := glob(t, report+"/sosreport-*")
	own := []byte(files.Read(t, filepath.Join(tops[0], sbFile)))
	all := otherDatabases(t, own)
	// What is wrong with a database does not depend on what it came in. Of those that are of other flows in the same
	// words, make test has one.
	name := func(db otherDatabase) string { return db.what }
	kept := map[string][]string{
		"sos": {"own", "minutes older", "of another zone", "cut in half", "one bit flipped", "gzip in gzip",
			"an error message", "absent"},
		"must-gather": {"own", "an error message", "absent"}, "files": {"own", "cut in half", "an error message"},
	}
	for shape, collect := range map[string]func(t *testing.T, wd, top string, content []byte) int{"sos": asReport,
		"must-gather": asMustGather, "files": asFiles} {
		for _, db := range sweep.Named(t, all, name, kept[shape]...) {
			t.Run(db.what+", "+shape, func(t *testing.T) {
				wd := shortDir(t)
				code := collect(t, wd, tops[0], db.content)
				if shape == "sos" && db.content != nil && db.said != "" {
					checkDrift(t, wd, db)
				}
				r := startAndTrace(t, wd)
				if db.what == "own" && code != 0 || db.what == "absent" && shape != "files" && code != 3 {
					t.Errorf("collect exits with %d", code)
				}
				r.check(t, db, shape)
			})
		}
	}
}

// asReport collects a sos report with a southbound database.
func asReport(t *testing.T, wd, top string, content []byte) int {
	tree := treeOf(t, top).Without(sbFile)
	if content != nil {
		tree.put(sbFile, content)
	}
	return collectInto(t, wd, writeTop(t, filepath.Base(top), tree)).code
}

// TestTimesOfAnotherDatabaseAreNamed has reports of several times with the southbound database of
// one moment: how far apart they are is said where the flows are not from the database.
func TestTimesOfAnotherDatabaseAreNamed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	report := unpacked(t, workerReport)
	top := glob(t, report+"/sosreport-*")[0]
	own := []byte(files.Read(t, filepath.Join(top, sbFile)))
	older := otherDatabases(t, own)[1].content
	for _, c := range []struct {
		name, date string // of the report: its folder, and the output of date --utc
		sb         []byte
		said       string
	}{
		{"sosreport-ovn-worker-2026-11-21-kdplive", "Sat Nov 21 09:26:40 UTC 2026", older,
			`its last transaction is of 2026-11-21 09:10:\d\dZ, 16 min before the flows were recorded`},
		{"sosreport-ovn-worker-2026-11-21-kdplive", "Tue Nov 24 09:26:40 UTC 2026", older,
			`its last transaction is of 2026-11-21 09:10:\d\dZ, 72 h before the flows were recorded`},
		{"sosreport-ovn-worker-2026-11-21-kdplive", "Fri Nov 20 09:26:40 UTC 2026", older,
			`its last transaction is of 2026-11-21 09:10:\d\dZ, 24 h after the flows were recorded`},
		{"sosreport-ovn-worker-2026-11-21-kdplive", "", older,
			`its last transaction is of 2026-11-21 09:10:\d\dZ; the flows were recorded about 2026-11-21`},
		{"sosreport-ovn-worker-2026-11-29-kdplive", "", older,
			`its last transaction is of 2026-11-21 09:10:\d\dZ, about 8 days before the flows were recorded`},
		{"worker", "", older, `its last transaction is of 2026-11-21 09:10:\d\dZ; when the flows were recorded is not known`},
		{"sosreport-ovn-worker-2026-11-29-kdplive", "", own, ""},
	} {
		t.Run(c.name+" "+c.date, func(t *testing.T) {
			tree := treeOf(t, top).Without(sbFile)
			tree.put(sbFile, c.sb)
			if c.date != "" {
				tree.putText("sos_commands/date/date_--utc", "%s\n", c.date)
			}
			wd := shortDir(t)
			collectInto(t, wd, writeTop(t, c.name, tree))
			dir, err := workdir.Find(wd)
			if err != nil {
				t.Fatal(err)
			}
			found, err := replicas.Doubts(t.Context(), dir)
			if said := strings.Join(found, "\n"); err != nil || c.said == "" && said != "" ||
				!regexp.MustCompile(c.said).MatchString(said) {
				t.Errorf("%q, want %q: %v", said, c.said, err)
			}
		})
	}
}

// asMustGather collects a must-gather of OVN interconnect with one.
func asMustGather(t *testing.T, wd, top string, content []byte) int {
	tree := Tree{}
	tree.putText("mg/version", "openshift/must-gather\n4.14.1\n")
	tree.putText("mg/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-aaaaa/ovnkube-node-aaaaa.yaml",
		"---\nkind: Pod\nmetadata:\n  name: ovnkube-node-aaaaa\nspec:\n  nodeName: ovn-worker\n")
	tree.putText("mg/network_logs/ovn-worker_ovs_ofctl_dump_flows_br_int", "%s",
		files.Read(t, filepath.Join(top, "sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int")))
	store := Tree{}
	for name, path := range map[string]string{"conf.db": "var/lib/openvswitch/conf.db",
		"nbdb": "var/lib/ovn/etc/ovnnb_db.db"} {
		store.putText("ovnk_database_store/ovnkube-node-aaaaa_"+name, "%s", files.Read(t, filepath.Join(top, path)))
	}
	if content != nil {
		store.put("ovnk_database_store/ovnkube-node-aaaaa_sbdb", content)
	}
	tree.put("mg/network_logs/ovnk_database_store.tar.gz", Gzip(store.Tar()))
	return collectInto(t, wd, write(t, tree)).code
}

// asFiles collects a report without a southbound database, and then the database alone.
func asFiles(t *testing.T, wd, top string, content []byte) int {
	asReport(t, wd, top, nil)
	if content == nil {
		return 0
	}
	path := filepath.Join(t.TempDir(), "ovnsb_db.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, "collect-db-ovn-sb", "-w", wd, path).code
}

// asked is what start and trace said of a replica.
type asked struct {
	start, trace outcome
	trust        string
}

func startAndTrace(t *testing.T, wd string) asked {
	t.Helper()
	a := asked{start: run(t, "start", "-w", wd)}
	defer func() {
		if o := run(t, "stop", "-w", wd, "--purge"); o.code != 0 {
			t.Error(o.err)
		}
		if _, err := os.Stat(wd); err == nil {
			t.Errorf("after stop --purge there is %s", wd)
		}
	}()
	var out, errs bytes.Buffer // the answer has the reason for its exit code
	a.trace.code = cmd.Main([]string{"trace", "-w", wd, "-o", "json", "ns1_client", "ns1_web1:8080", "tcp"},
		cmd.IO{Out: &out, Err: &errs})
	a.trace.out, a.trace.err = out.String(), errs.String()
	var answer struct {
		Trust json.RawMessage `json:"trust"`
	}
	if err := json.Unmarshal([]byte(a.trace.out), &answer); err != nil {
		t.Errorf("%v: %s%s", err, a.trace.out, a.trace.err)
	}
	a.trust = string(answer.Trust)
	return a
}

// checkDrift checks that drift says first what is wrong with a database.
func checkDrift(t *testing.T, wd string, db otherDatabase) {
	t.Helper()
	if _, err := exec.LookPath("ovn-controller"); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	code := cmd.Main([]string{"drift", "-w", wd}, cmd.IO{Out: &out, Err: &errs})
	first, _, _ := strings.Cut(out.String(), "\n")
	if code != 3 && code != 4 || !strings.Contains(first, db.said) && db.what != "an error message" {
		t.Errorf("drift exits with %d and says %q first, not %q: %s", code, first, db.said, &errs)
	}
	if lost := db.what == "cut in half" || db.what == "one bit flipped"; lost && code != 3 {
		t.Errorf("drift of a database that is not whole exits with %d, want 3", code)
	}
}

// check compares what was said with what is wrong with the database.
func (a asked) check(t *testing.T, db otherDatabase, shape string) {
	t.Helper()
	said, exit := db.said, db.exit
	if db.what == "an error message" && shape == "files" { // it was refused: the node has no database
		said, exit = "no OVN SB database", 0
	}
	if a.start.code != exit || a.trace.code != exit {
		t.Errorf("start exits with %d and trace with %d, want %d: %s", a.start.code, a.trace.code, exit, a.start.err)
	}
	named := a.start.out + a.start.err
	if said == "no OVN SB database" {
		named = strings.ReplaceAll(named, "lacks a database of its deployment: OVN SB", said)
	}
	for what, text := range map[string]string{"start": named, "trust": a.trust} {
		if !strings.Contains(text, said) {
			t.Errorf("%s does not say %q: %s", what, said, text)
		}
		if said == "" && (strings.Contains(text, "SB database is of") || strings.Contains(text, "not wholly")) {
			t.Errorf("%s doubts the node's own database: %s", what, text)
		}
	}
}

// TestOwnDatabasesAreNotDoubted starts each bundled report: no database of it is in doubt.
func TestOwnDatabasesAreNotDoubted(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	for _, path := range glob(t, "../../../testdata/captures/*/*.tar.xz",
		"../../../testdata/versions/*/sosreport-*.tar.xz") {
		if !strings.HasPrefix(filepath.Base(path), "sosreport-") {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			r := replay(t, path)
			if r.report.Origin.IsForeign() || len(r.manifest.LostDatabases()) > 0 {
				t.Errorf("in doubt: %+v, lost %q", r.report.Origin, r.manifest.LostDatabases())
			}
		})
	}
}

// unpacked returns a folder with the files of an archive.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "--no-same-owner", "-C", dir, "-xf", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// treeOf returns the regular files of a folder.
func treeOf(t *testing.T, folder string) Tree {
	t.Helper()
	tree := Tree{}
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		tree.put(name, []byte(files.Read(t, path)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// sb returns the southbound database of a bundled report.
func sb(t *testing.T, report string) []byte {
	t.Helper()
	return []byte(files.Read(t, glob(t, unpacked(t, report)+"/*/"+sbFile)[0]))
}

// release returns a southbound database of OVN 25.03.
func release(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../../testdata/versions/ovn-25.03/ovnsb_db.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// glob returns the paths that match a pattern. It fails without any.
func glob(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Fatalf("%q: not found", patterns)
	}
	return paths
}
