package workdir

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lock opens a workdir, which stays locked until the test ends or unlocks it.
func lock(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Unlock)
	return d
}

func fresh(t *testing.T) *Dir {
	t.Helper()
	return lock(t, filepath.Join(t.TempDir(), "wd"))
}

// stage stages a collection of each of the kinds, in which every file holds text.
func stage(t *testing.T, d *Dir, text string, kinds ...Kind) (*Staging, []Collection) {
	t.Helper()
	s, err := d.Stage()
	if err != nil {
		t.Fatal(err)
	}
	var list []Collection
	for _, k := range kinds {
		if err := s.Replace(k, false); err != nil {
			t.Fatal(err)
		}
		paths := []string{s.Database(k)}
		if k == OVS {
			paths = append(paths, s.DumpFile("br0", Flows), s.BridgeRecorded("br0", RecordedFDB), s.Recorded(RecordedBFD))
		}
		c := Collection{Kind: k, Source: Source{Kind: "test", Name: text}, Collected: time.Unix(1, 0).UTC()}
		for _, path := range paths {
			f, err := s.Copy(context.Background(), strings.NewReader(text), path)
			if err != nil {
				t.Fatal(err)
			}
			f.Origin = text
			c.Files = append(c.Files, f)
		}
		list = append(list, c)
	}
	return s, list
}

// install stages a collection and installs it.
func install(t *testing.T, d *Dir, text string, kinds ...Kind) {
	t.Helper()
	s, list := stage(t, d, text, kinds...)
	if err := s.Install(list...); err != nil {
		t.Fatal(err)
	}
}

// tree returns the content of every file below root, except for the lock, by path.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(root+"/.", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".lock" {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		raw, err := os.ReadFile(path)
		seen[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}
