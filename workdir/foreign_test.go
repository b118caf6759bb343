package workdir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ovs-offline/test/check/files"
)

// TestForgedCommitMovesNothing checks that a commit moves only parts of a collection: a
// workdir can come from another person.
func TestForgedCommitMovesNothing(t *testing.T) {
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
		if err == nil || !strings.Contains(err.Error(), "not part of a collection") {
			t.Errorf("%q: %v", unit, err)
		}
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}

// TestPurgeFollowsNoLinkOut checks that a file behind a link stays.
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

// TestLinksAndPipesAreRefused checks special files in a workdir: links would lead
// writes and removals out of it, and reading pipes and devices would never end.
func TestLinksAndPipesAreRefused(t *testing.T) {
	link := func(path string) error { return os.Symlink("/usr/bin", path) }
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	for _, name := range []string{"bin", "run", "var-run", stagingName, "run/ovs", "db", "db/ovs", "db/ovs/conf.db",
		"restore_flows", "recorded", "recorded/bridges/br-int/show",
		"manifest.json", "replica.json", "report.json", stagingName + "/" + commitName} {
		for what, make := range map[string]func(string) error{"a link": link, "a named pipe": pipe} {
			wd := filepath.Join(t.TempDir(), "wd")
			if err := os.MkdirAll(filepath.Dir(filepath.Join(wd, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(wd, name)); err != nil {
				t.Fatal(err)
			}
			for command, open := range map[string]func(string) (*Dir, error){"Find": Find, "Lock": Lock} {
				d, err := open(wd)
				if err == nil {
					d.Unlock()
				}
				if err == nil || !strings.Contains(err.Error(), name+" is "+what) {
					t.Errorf("%s: %s %s: %v", command, name, what, err)
				}
			}
		}
	}
}

// TestLinksOfTheSystemAreNotToBeRemoved checks the advice for a folder as /, in which bin is a
// link that the system needs, and for a workdir.
func TestLinksOfTheSystemAreNotToBeRemoved(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("usr/bin", filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(root); err == nil || strings.Contains(err.Error(), "remove") ||
		!strings.Contains(err.Error(), "choose another with -w") {
		t.Errorf("a folder that is no workdir: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "restore_flows"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(root); err == nil || !strings.Contains(err.Error(), "remove it, or choose another with -w") {
		t.Errorf("a workdir: %v", err)
	}
}

// TestManifestOfTinyObjectsIsRefused checks that 8 MiB of text do not become
// hundreds of MiB of structs.
func TestManifestOfTinyObjectsIsRefused(t *testing.T) {
	d := fresh(t)
	files.Write(t, d.manifestPath(), `{"collections":[{}`+strings.Repeat(",{}", 8<<20/3)+"]}")
	if _, err := d.Manifest(); err == nil || !strings.Contains(err.Error(), "more than 500000 JSON objects") {
		t.Error(err)
	}
}

// TestOversizedManifestIsRefused checks that the text is not read into memory.
func TestOversizedManifestIsRefused(t *testing.T) {
	d := fresh(t)
	if err := os.WriteFile(d.manifestPath(), []byte(strings.Repeat(" ", MaxText+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := d.Manifest()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Error(err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes", grown)
	}
}
