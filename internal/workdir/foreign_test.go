package workdir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// TestStrangeThings: links would be followed out of the workdir, where files are
// written and removed; pipes and devices would be read for ever.
func TestStrangeThings(t *testing.T) {
	link := func(path string) error { return os.Symlink("/usr/bin", path) }
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	for _, name := range []string{"bin", "run", "var-run", stagingName, "run/ovs", "db", "db/ovs", "db/ovs/conf.db", "restore_flows", "recorded", "recorded/bridges/br-int/show",
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

// TestFilesThatAreNoneOfOurs: what bears the name of one of our files may hold anything.
func TestFilesThatAreNoneOfOurs(t *testing.T) {
	d := fresh(t)
	for name, text := range map[string]string{
		"a hundred MB": strings.Repeat(" ", 100<<20), "ten million values": `{"collections":[` + strings.Repeat("{},", 10<<20) + `{}]}`,
	} {
		if err := os.WriteFile(d.manifestPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.Manifest()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; err == nil || grown > 64<<20 {
			t.Errorf("%s: %v, %d bytes", name, err, grown)
		}
	}
}
