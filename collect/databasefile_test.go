package collect

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

// names maps kinds to the names of their databases.
var names = map[workdir.Kind]string{workdir.OVS: ovsdb.OVS, workdir.NB: ovsdb.NB, workdir.SB: ovsdb.SB}

// save writes a database file of a few records.
func save(t *testing.T, name string, rows int) string {
	t.Helper()
	return saveBytes(t, []byte(database(name, rows)))
}

func saveBytes(t *testing.T, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.file")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func collectDatabase(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, path string,
	force bool) (workdir.Collection, error) {
	list, err := collections(Collect(ctx, wd, DatabaseFile{Path: path, Kind: kind},
		Options{Force: force, Select: Select{Database: kind}}))
	if err != nil {
		return workdir.Collection{}, err
	}
	return list[0], nil
}

func takeDatabase(t *testing.T, wd *workdir.Dir, kind workdir.Kind, path string, force bool) workdir.Collection {
	t.Helper()
	c, err := collectDatabase(context.Background(), wd, kind, path, force)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDatabaseOfEachKind(t *testing.T) {
	wd := newWorkdir(t)
	for kind, rel := range map[workdir.Kind]string{workdir.OVS: "db/ovs/conf.db", workdir.NB: "db/ovn_nb/ovnnb_db.db",
		workdir.SB: "db/ovn_sb/ovnsb_db.db"} {
		path := save(t, names[kind], 3)
		got := takeDatabase(t, wd, kind, path, false)
		if files.Read(t, filepath.Join(wd.Path(), rel)) != files.Read(t, path) {
			t.Errorf("%s is not what was given", rel)
		}
		want := workdir.File{Path: rel, Origin: path, Size: int64(len(files.Read(t, path))),
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(files.Read(t, path))))}
		if !reflect.DeepEqual(got.Files, []workdir.File{want}) || got.Source.Kind != "database file" ||
			got.Source.Name != path {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	m, err := wd.Manifest()
	if err != nil || len(m.Collections) != 3 {
		t.Errorf("%v %+v", err, m)
	}
}

// TestWrongKindNamesTheRightCommand checks that the error names the kind of the file,
// and the command for that kind.
func TestWrongKindNamesTheRightCommand(t *testing.T) {
	commands := map[workdir.Kind]string{workdir.OVS: "collect-db-ovs", workdir.NB: "collect-db-ovn-nb",
		workdir.SB: "collect-db-ovn-sb"}
	wd := newWorkdir(t)
	before := tree(t, wd.Path())
	for is, name := range names {
		for asked := range names {
			if is == asked {
				continue
			}
			path := save(t, name, 1)
			_, err := collectDatabase(context.Background(), wd, asked, path, false)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), name) ||
				!strings.HasSuffix(err.Error(), "use "+commands[is]) {
				t.Errorf("%s for %s: %v", is, asked, err)
			}
		}
	}
	if _, err := collectDatabase(context.Background(), wd, workdir.OVS, save(t, "hardware_vtep", 1), false); err == nil ||
		!strings.Contains(err.Error(), "hardware_vtep") {
		t.Errorf("another database: %v", err)
	}
	if !reflect.DeepEqual(tree(t, wd.Path()), before) {
		t.Error("something was written")
	}
}

// TestDatabaseFormsAreCollectedUnchanged checks that the database of a cluster member,
// a gzip'd and a damaged database are collected unchanged, with a remark where needed.
func TestDatabaseFormsAreCollectedUnchanged(t *testing.T) {
	head := `{"cluster_id":"6f0a5e3a-0e0f-4c1d-8f6e-0123456789ab","local_address":"tcp:1.2.3.4:6644","name":"OVN_Southbound","prev_data":[{"name":"OVN_Southbound","version":"1.2.3","tables":{}},{}],"prev_index":1,"prev_term":1,"server_id":"6f0a5e3a-0e0f-4c1d-8f6e-0123456789ac"}`
	cluster := strings.Replace(record(head), "OVSDB JSON", "OVSDB CLUSTER", 1)
	for _, c := range []struct {
		what, content, remark, lost string
	}{
		{"standalone", database(ovsdb.SB, 3), "", ""},
		{"gzip", string(files.Gzip(t, []byte(database(ovsdb.SB, 3)))), "", ""},
		{"clustered", cluster, "clustered (RAFT) database; converted to standalone", ""},
		{"rewritten by sos clean", strings.Replace(database(ovsdb.SB, 3), "row", "host0", 1), "repaired", ""},
		{"torn", database(ovsdb.SB, 3)[:len(database(ovsdb.SB, 3))-4], "", "1 places"},
		{"cut in the middle", database(ovsdb.SB, 3)[:len(database(ovsdb.SB, 3))/2], "", "1 places"},
	} {
		wd := newWorkdir(t)
		got := takeDatabase(t, wd, workdir.SB, saveBytes(t, []byte(c.content)), false)
		if files.Read(t, wd.Database(workdir.SB)) != c.content {
			t.Errorf("%s: not kept as it is", c.what)
		}
		if said := strings.Join(got.Files[0].Remarks, "\n"); !strings.Contains(said, c.remark) ||
			(said == "") != (c.remark == "") {
			t.Errorf("%s: got the remarks %q, want %q", c.what, said, c.remark)
		}
		if lost := strings.Join(got.Lost, "\n"); !strings.Contains(lost, c.lost) || (lost == "") != (c.lost == "") {
			t.Errorf("%s: got the losses %q, want %q", c.what, lost, c.lost)
		}
	}
}

// TestDatabaseFailureChangesNothing checks that the earlier database stays if a new one
// is refused or fails.
func TestDatabaseFailureChangesNothing(t *testing.T) {
	wd := newWorkdir(t)
	first := save(t, ovsdb.NB, 1)
	takeDatabase(t, wd, workdir.NB, first, false)
	before := tree(t, wd.Path())
	whole := database(ovsdb.NB, 5)
	tail := saveBytes(t, []byte(strings.Repeat(`"x":["uuid","1"],`, 20)+whole[len(whole)/2:]))
	for what, c := range map[string]struct {
		path  string
		force bool
		want  error
	}{
		"occupied":    {save(t, ovsdb.NB, 2), false, ErrOccupied},
		"missing":     {filepath.Join(t.TempDir(), "no"), true, os.ErrNotExist},
		"a folder":    {t.TempDir(), true, nil},
		"empty":       {saveBytes(t, nil), true, file.ErrEmpty},
		"text":        {saveBytes(t, []byte("hello\n")), true, file.ErrNotDatabase},
		"tailed":      {tail, true, file.ErrTailed},
		"wrong kind":  {save(t, ovsdb.SB, 1), true, nil},
		"other magic": {saveBytes(t, []byte("PK\x03\x04")), true, file.ErrNotDatabase},
	} {
		_, err := collectDatabase(context.Background(), wd, workdir.NB, c.path, c.force)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if what == "occupied" && (!strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), "--force")) ||
			what != "occupied" && !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: it doesn't say enough: %v", what, err)
		}
		if !reflect.DeepEqual(tree(t, wd.Path()), before) {
			t.Errorf("%s: something has changed", what)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := collectDatabase(ctx, wd, workdir.NB, save(t, ovsdb.NB, 2), true); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if !reflect.DeepEqual(tree(t, wd.Path()), before) {
		t.Error("cancelled: something has changed")
	}
	takeDatabase(t, wd, workdir.NB, save(t, ovsdb.NB, 7), true)
	if files.Read(t, wd.Database(workdir.NB)) != database(ovsdb.NB, 7) {
		t.Error("--force did not replace it")
	}
}

// TestDumpsSurviveAnotherDatabase checks that replacing conf.db keeps the flows and
// everything in the manifest about them.
func TestDumpsSurviveAnotherDatabase(t *testing.T) {
	wd := newWorkdir(t)
	list, err := collectReport(wd, compute, both, Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, wd.Path())
	got := takeDatabase(t, wd, workdir.OVS, save(t, ovsdb.OVS, 4), true)
	after := tree(t, wd.Path())
	if after["db/ovs/conf.db"] != before["manifest.json"][:len("-rw-------")]+" "+hash([]byte(database(ovsdb.OVS, 4))) {
		t.Error("conf.db was not replaced")
	}
	for _, changed := range []string{"db/ovs/conf.db", "manifest.json"} {
		delete(before, changed)
		delete(after, changed)
	}
	if !reflect.DeepEqual(before, after) {
		t.Error("more than conf.db has changed")
	}
	old := list[0]
	if !reflect.DeepEqual(got.Bridges, old.Bridges) || got.Host != old.Host || got.OVSVersion != old.OVSVersion ||
		len(got.Files) != len(old.Files) {
		t.Errorf("forgotten: %+v", got)
	}
}

// TestDatabaseFileReplacesLostDatabase checks that collecting a database file removes
// the losses that concern this database from every collection, and keeps the losses
// that concern dumps. Nothing is replaced, so --force is not needed.
func TestDatabaseFileReplacesLostDatabase(t *testing.T) {
	report := t.TempDir()
	var many []string // more bridges than are taken
	for i := range 5000 {
		many = append(many, fmt.Sprintf("br-%d", i))
	}
	for name, text := range map[string]string{
		"etc/openvswitch/conf.db":                           database(ovsdb.OVS, 9)[300:] + `["uuid","1"]`,
		"var/lib/ovn/etc/ovnnb_db.db":                       "garbage\n",
		"sos_commands/openvswitch/ovs-vsctl_-t_5_list-br":   "br0\n" + strings.Join(many, "\n"),
		"sos_commands/openvswitch/ovs-ofctl_dump-flows_br0": "NXST_FLOW reply (xid=0x4):\n priority=1 actions=drop\n",
	} {
		path := filepath.Join(report, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	wd := newWorkdir(t)
	list, err := collectReport(wd, report, both, Options{})
	if err != nil || len(list) != 1 || len(list[0].Lost) != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	lost := func() []string {
		m, err := wd.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		return m.Collection(workdir.OVS).Lost
	}
	if got := takeDatabase(t, wd, workdir.OVS, save(t, ovsdb.OVS, 4), false); len(got.Lost) != 2 ||
		!strings.Contains(got.Lost[1], "ovnnb_db.db") {
		t.Errorf("with an OVS database: %q", got.Lost)
	}
	if got := lost(); len(got) != 2 {
		t.Errorf("in the manifest: %q", got)
	}
	takeDatabase(t, wd, workdir.NB, save(t, ovsdb.NB, 4), false)
	if got := lost(); len(got) != 1 || !strings.Contains(got[0], "bridges") {
		t.Errorf("with both: %q", got)
	}
}

// TestCollectsTheFileThatItReplaces collects the very file that the collection replaces.
func TestCollectsTheFileThatItReplaces(t *testing.T) {
	wd := newWorkdir(t)
	takeDatabase(t, wd, workdir.SB, save(t, ovsdb.SB, 2), false)
	takeDatabase(t, wd, workdir.SB, wd.Database(workdir.SB), true)
	if files.Read(t, wd.Database(workdir.SB)) != database(ovsdb.SB, 2) {
		t.Error("lost")
	}
}

// TestDatabaseFromAPipe collects from a pipe, which can be read only once.
func TestDatabaseFromAPipe(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.WriteString(in, database(ovsdb.SB, 2)); err != nil {
		t.Fatal(err)
	}
	in.Close()
	wd := newWorkdir(t)
	takeDatabase(t, wd, workdir.SB, fmt.Sprintf("/dev/fd/%d", out.Fd()), false)
	if files.Read(t, wd.Database(workdir.SB)) != database(ovsdb.SB, 2) {
		t.Error("not what the pipe brought")
	}
}

func TestDatabaseFileWritesOnlyTheWorkdir(t *testing.T) {
	tmp, cwd := t.TempDir(), t.TempDir()
	wd := newWorkdir(t)
	path := save(t, ovsdb.SB, 2)
	before := tree(t, filepath.Dir(path))
	t.Setenv("TMPDIR", tmp)
	t.Chdir(cwd)
	takeDatabase(t, wd, workdir.SB, path, false)
	if len(tree(t, tmp))+len(tree(t, cwd)) != 2 || !reflect.DeepEqual(tree(t, filepath.Dir(path)), before) {
		t.Error("something was written outside")
	}
}
