package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A workdir can come from somebody else: copied, or unpacked from an archive.

// TestForgedCommit: what a commit names is moved only if it is part of a collection.
func TestForgedCommit(t *testing.T) {
	top := t.TempDir()
	wd, victim := filepath.Join(top, "wd"), filepath.Join(top, "victim")
	for _, dir := range []string{victim, filepath.Join(wd, stagingName, "x")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, unit := range []string{"../victim", "db", "", ".", "db/../../victim"} {
		if err := WriteJSON(filepath.Join(wd, stagingName, commitName), commit{Units: []string{unit}}); err != nil {
			t.Fatal(err)
		}
		d, err := Lock(wd)
		if err == nil {
			d.Unlock()
		}
		if err == nil || !strings.Contains(err.Error(), "no part of a collection") {
			t.Errorf("%q: %v", unit, err)
		}
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}

// TestPurgeFollowsNoLinkOut: a file that is reached by a link stays.
func TestPurgeFollowsNoLinkOut(t *testing.T) {
	d := fresh(t)
	install(t, d, "x", OVS)
	away := t.TempDir()
	if err := os.Rename(d.join("db", "ovs"), filepath.Join(away, "ovs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(away, "ovs"), d.join("db", "ovs")); err != nil {
		t.Fatal(err)
	}
	left, err := d.Purge()
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(away, "ovs", "conf.db")); err != nil {
		t.Error(err)
	}
	if len(left) != 1 || left[0] != "db/ovs" {
		t.Errorf("left: %q", left)
	}
}

// TestLinksWhereFilesAreWritten: they would be written, and removed, elsewhere.
func TestLinksWhereFilesAreWritten(t *testing.T) {
	for _, name := range []string{"bin", "run", "var-run", stagingName, "run/ovs"} {
		wd := filepath.Join(t.TempDir(), "wd")
		if err := os.MkdirAll(filepath.Dir(filepath.Join(wd, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/usr/bin", filepath.Join(wd, name)); err != nil {
			t.Fatal(err)
		}
		d, err := Lock(wd)
		if err == nil {
			d.Unlock()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
