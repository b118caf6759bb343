package workdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
)

// TestInterruptedInstall interrupts an installation after every step, and checks that
// the next command finds the complete old collection or the complete new one.
func TestInterruptedInstall(t *testing.T) {
	base := t.TempDir()
	old := lock(t, filepath.Join(base, "old"))
	install(t, old, "old", OVS, NB)
	before := tree(t, old.Path())
	full := lock(t, filepath.Join(base, "full"))
	install(t, full, "old", OVS, NB)
	install(t, full, "new", OVS, SB)
	after := tree(t, full.Path())
	if before["db/ovs/conf.db"] != "old" || after["db/ovs/conf.db"] != "new" || after["db/ovn_nb/ovnnb_db.db"] != "old" ||
		after["db/ovn_sb/ovnsb_db.db"] != "new" {
		t.Fatal("not what this test is about", before, after)
	}
	old.Unlock()

	// The steps of Install, one by one.
	units := []string{"db/ovn_sb", "db/ovs", "recorded", "restore_flows"}
	incoming := func(d *Dir) string { return d.join(stagingName) }
	steps := []func(*testing.T, *Dir, *Staging, []Collection){
		func(t *testing.T, d *Dir, s *Staging, list []Collection) {
			m, err := d.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				m.put(c)
			}
			if err := WriteJSON(s.manifestPath(), m); err != nil {
				t.Fatal(err)
			}
		},
		func(t *testing.T, d *Dir, s *Staging, _ []Collection) {
			if err := WriteJSON(s.join(commitName), commit{Units: units}); err != nil {
				t.Fatal(err)
			}
		},
	}
	committed := len(steps)
	for _, unit := range units {
		steps = append(steps, func(t *testing.T, d *Dir, _ *Staging, _ []Collection) {
			// Part of the old collection is removed.
			entries, _ := os.ReadDir(d.join(unit))
			for _, e := range entries[:len(entries)/2] {
				os.RemoveAll(d.join(unit, e.Name()))
			}
		}, func(t *testing.T, d *Dir, _ *Staging, _ []Collection) {
			if err := os.RemoveAll(d.join(unit)); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, d *Dir, _ *Staging, _ []Collection) {
			if err := os.Rename(filepath.Join(incoming(d), unit), d.join(unit)); err != nil {
				t.Fatal(err)
			}
		})
	}
	steps = append(steps,
		func(t *testing.T, d *Dir, _ *Staging, _ []Collection) {
			if err := os.Rename(filepath.Join(incoming(d), "manifest.json"), d.manifestPath()); err != nil {
				t.Fatal(err)
			}
		},
		func(t *testing.T, d *Dir, _ *Staging, _ []Collection) { os.RemoveAll(filepath.Join(incoming(d), "db")) },
		func(t *testing.T, d *Dir, _ *Staging, _ []Collection) {
			if err := os.Remove(filepath.Join(incoming(d), commitName)); err != nil {
				t.Fatal(err)
			}
		},
		func(t *testing.T, d *Dir, _ *Staging, _ []Collection) { os.RemoveAll(incoming(d)) })

	for done := 0; done <= len(steps); done++ {
		d := lock(t, filepath.Join(base, fmt.Sprint("cut", done)))
		install(t, d, "old", OVS, NB)
		s, list := stage(t, d, "new", OVS, SB)
		for _, step := range steps[:done] {
			step(t, d, s, list)
		}
		d.Unlock() // as a killed process does
		want := before
		if done >= committed {
			want = after
		}
		for range 2 { // a second call changes nothing
			d = lock(t, d.Path())
			if got := tree(t, d.Path()); !reflect.DeepEqual(got, want) {
				t.Errorf("after %d of %d steps:\n%v\nnot\n%v", done, len(steps), got, want)
			}
			d.Unlock()
		}
	}
}

// TestInterruptedRecovery checks that an installation is completed even if the first
// command that tries fails, because a unit cannot be moved.
func TestInterruptedRecovery(t *testing.T) {
	d := fresh(t)
	install(t, d, "old", OVS)
	s, list := stage(t, d, "new", OVS)
	// A file in place of the folder db/ makes the installation fail after its commit.
	if err := os.Rename(d.join("db"), d.join("elsewhere")); err != nil {
		t.Fatal(err)
	}
	files.Write(t, d.join("db"), "in the way")
	if err := s.Install(list...); err == nil {
		t.Fatal("installed")
	}
	s.Discard() // as collectors do on any error
	d.Unlock()
	if err := os.Remove(d.join("db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.join("elsewhere"), d.join("db")); err != nil {
		t.Fatal(err)
	}
	d = lock(t, d.Path())
	got := tree(t, d.Path())
	m, err := d.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Collection(OVS).Files {
		if got[f.Path] != m.Collection(OVS).Source.Name {
			t.Errorf("the manifest is of %q, %s of %q", m.Collection(OVS).Source.Name, f.Path, got[f.Path])
		}
	}
}

// TestFilesOfTheUserAreKept checks that files that a user added are never removed.
func TestFilesOfTheUserAreKept(t *testing.T) {
	d := fresh(t)
	install(t, d, "old", OVS, NB)
	files.Write(t, d.join("restore_flows", "notes.txt"), "mine")
	files.Write(t, d.join("recorded", "bridges", "br0", "deep", "file"), "mine")
	files.Write(t, d.join("top.txt"), "mine")
	files.Write(t, d.join("db", "readme"), "mine")
	install(t, d, "new", OVS)
	files.Write(t, d.join("restore_flows", "notes.txt"), "mine again")
	install(t, d, "newer", OVS)
	got := tree(t, d.Path())
	for path, want := range map[string]string{
		"restore_flows.old-1/notes.txt": "mine", "restore_flows.old-2/notes.txt": "mine again",
		"recorded.old-1/bridges/br0/deep/file": "mine", "top.txt": "mine", "db/readme": "mine",
		"db/ovs/conf.db": "newer", "db/ovn_nb/ovnnb_db.db": "old", "restore_flows/br0.flows.dump": "newer",
	} {
		expect.Equal(t, got[path], want, path)
	}
	left, err := d.Purge()
	if err != nil {
		t.Fatal(err)
	}
	got = tree(t, d.Path())
	for _, path := range []string{"restore_flows.old-1/notes.txt", "restore_flows.old-2/notes.txt",
		"recorded.old-1/bridges/br0/deep/file", "top.txt", "db/readme"} {
		if got[path] == "" {
			t.Errorf("%s was removed", path)
		}
	}
	if len(left) != len(got) {
		t.Errorf("listed %q, there is %v", left, got)
	}
	for _, path := range left {
		if _, there := got[path]; !there {
			t.Errorf("%s is listed, but does not exist", path)
		}
	}
	if got["db/ovs/conf.db"] != "" || got["manifest.json"] != "" {
		t.Error("collected files still exist")
	}
}

func TestPurge(t *testing.T) {
	d := fresh(t)
	install(t, d, "old", OVS, NB, SB)
	left, err := d.Purge()
	if err != nil || len(left) > 0 || d.Exists() {
		t.Errorf("left %q, %v, there: %v", left, err, d.Exists())
	}
	// The manifest names a file outside of the workdir.
	d = fresh(t)
	install(t, d, "old", OVS)
	victim := filepath.Join(filepath.Dir(d.Path()), "victim")
	files.Write(t, victim, "precious")
	m, err := d.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m.Collections[0].Files = append(m.Collections[0].Files, File{Path: "../victim"})
	if err := WriteJSON(d.manifestPath(), m); err != nil {
		t.Fatal(err)
	}
	before := tree(t, d.Path())
	if _, err := d.Purge(); err == nil || !strings.Contains(err.Error(), "../victim") {
		t.Errorf("got %v, want an error that names ../victim", err)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error("removed")
	}
	if !reflect.DeepEqual(tree(t, d.Path()), before) {
		t.Error("a file is removed nevertheless")
	}
}

// TestPurgeRemovesWhatAKilledCommandLeft purges a folder below which a load of several nodes
// was killed: what it had not installed goes, and a workdir in use and files of users stay.
func TestPurgeRemovesWhatAKilledCommandLeft(t *testing.T) {
	d := fresh(t)
	install(t, d, "x", OVS)
	for _, name := range []string{"killed/.lock", "killed/.incoming/recorded/half", "begun/.lock", "own/.lock",
		"own/notes", "other/.incoming/x"} {
		files.Write(t, d.join(name), "")
	}
	used := lock(t, d.join("used"))
	defer used.Unlock()
	left, err := d.Purge()
	want := []string{"other/.incoming/x", "own/.lock", "own/notes", "used/.lock"}
	for i, name := range left {
		left[i] = strings.TrimPrefix(name, "./")
	}
	if slices.Sort(left); err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q, %v, want %q", left, err, want)
	}
}

func TestOccupied(t *testing.T) {
	d := fresh(t)
	if there, err := d.Occupied(false, Kinds()...); err != nil || len(there) > 0 {
		t.Errorf("an empty one: %q %v", there, err)
	}
	install(t, d, "/path/of/the/source", NB)
	there, err := d.Occupied(false, Kinds()...)
	if err != nil || len(there) != 1 || !strings.Contains(there[0], "/path/of/the/source") ||
		!strings.Contains(there[0], "OVN NB") {
		t.Errorf("got %q, %v, want the source and its database", there, err)
	}
	files.Write(t, d.DumpFile("br0", Flows), "by hand")
	if there, _ := d.Occupied(false, OVS); len(there) != 1 || !strings.Contains(there[0], "restore_flows") {
		t.Errorf("by hand: %q", there)
	}
	if there, _ := d.Occupied(true, OVS); len(there) != 0 {
		t.Errorf("its database alone: %q", there)
	}
	// A collection of flows alone does not occupy the database.
	s, err := d.Stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(OVS, false); err != nil {
		t.Fatal(err)
	}
	f, err := s.Copy(context.Background(), strings.NewReader("flows"), s.DumpFile("br0", Flows))
	if err := errors.Join(err, s.Install(Collection{Kind: OVS, Files: []File{f}})); err != nil {
		t.Fatal(err)
	}
	if there, _ := d.Occupied(true, OVS); len(there) != 0 {
		t.Errorf("its database, beside collected flows: %q", there)
	}
	if there, _ := d.Occupied(false, OVS); len(there) != 1 {
		t.Errorf("collected flows: %q", there)
	}
}

// TestDatabaseIsReplacedAlone replaces one part of a kind and leaves the rest.
func TestDatabaseIsReplacedAlone(t *testing.T) {
	d := fresh(t)
	install(t, d, "old", OVS)
	s, err := d.Stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(OVS, true); err != nil {
		t.Fatal(err)
	}
	f, err := s.Copy(context.Background(), strings.NewReader("new"), s.Database(OVS))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(Collection{Kind: OVS, Files: []File{f}}); err != nil {
		t.Fatal(err)
	}
	got := tree(t, d.Path())
	for path, want := range map[string]string{"db/ovs/conf.db": "new", "restore_flows/br0.flows.dump": "old",
		"recorded/bfd.show": "old"} {
		expect.Equal(t, got[path], want, path)
	}
}

// cancelling is a source that cancels the context while it is read.
type cancelling struct{ cancel func() }

func (c cancelling) Read(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// TestCopyEndsWithItsContext also checks Move.
func TestCopyEndsWithItsContext(t *testing.T) {
	d := fresh(t)
	s, err := d.Stage()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := s.Copy(ctx, cancelling{cancel}, s.Database(NB)); !errors.Is(err, context.Canceled) {
		t.Errorf("copying: %v", err)
	}
}

// TestMoveKeepsTheDigest checks that the entry has the size and digest of the spooled
// file, which is not read again.
func TestMoveKeepsTheDigest(t *testing.T) {
	s, err := fresh(t).Stage()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	spool, err := s.Spool()
	if err != nil {
		t.Fatal(err)
	}
	spooled, err := archive.Spool(t.Context(), spool, strings.NewReader("y"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := s.Move(spooled, s.Database(SB))
	if err != nil {
		t.Error(err)
	}
	expect.Equal(t, file, File{Path: "db/ovn_sb/ovnsb_db.db", Size: 1, SHA256: spooled.SHA256})
}

func TestDiscardRemovesTheStaging(t *testing.T) {
	d := fresh(t)
	install(t, d, "old", OVS)
	before := tree(t, d.Path())
	s, _ := stage(t, d, "new", OVS)
	if spool, err := s.Spool(); err != nil {
		t.Fatal(err)
	} else {
		files.Write(t, filepath.Join(spool, "x"), "y")
	}
	s.Discard()
	if !reflect.DeepEqual(tree(t, d.Path()), before) {
		t.Error("something is left")
	}
	if _, err := os.Stat(d.join(stagingName)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the staging folder is left")
	}
}

// TestPurgeLeavesOtherFoldersAlone purges a folder that is no workdir.
func TestPurgeLeavesOtherFoldersAlone(t *testing.T) {
	d := fresh(t)
	files.Write(t, d.join("notes"), "")
	if err := os.MkdirAll(d.join("empty", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, d.Path())
	if left, err := d.Purge(); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if after := tree(t, d.Path()); !reflect.DeepEqual(after, before) {
		t.Errorf("%v became %v", before, after)
	}
	if _, err := os.Stat(d.join("empty", "folder")); err != nil {
		t.Error(err)
	}
}
