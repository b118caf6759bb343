package workdir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzNames(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkName(t, name)
		if back, ok := DecodeName(name); ok && EncodeName(back) != name {
			t.Errorf("%q is taken for %q, which becomes %q", name, back, EncodeName(back))
		}
	})
}

// FuzzManifest puts any manifest into a workdir that has a link out of it, and checks
// that reading, replacing and removing the files that the manifest names changes
// nothing outside.
func FuzzManifest(f *testing.F) {
	for _, path := range []string{"db/ovs/conf.db", "../outside", "/etc/hostname", "out/kept", "db/ovs/../../../outside",
		"", ".", "restore_flows"} {
		raw, err := json.Marshal(Manifest{Format: FormatVersion,
			Collections: []Collection{{Kind: OVS, Files: []File{{Path: path}}}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"format":1e999}`)
	f.Add(`{"format":1,"collections":null}`)
	f.Add(`{"format":1,"collections":[{"kind":"ovs","kind":"../x","files":[null]}]}`)
	f.Add(strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, manifest string) {
		top := t.TempDir()
		outside := filepath.Join(top, "outside")
		for _, dir := range []string{"wd/db/ovs", "wd/restore_flows", "away"} {
			if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{outside, filepath.Join(top, "away/kept"), filepath.Join(top, "wd/db/ovs/conf.db")} {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("../away", filepath.Join(top, "wd/out")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, "wd/manifest.json"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Lock(filepath.Join(top, "wd"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Unlock()
		if m, err := d.Manifest(); err == nil {
			m.Collection(OVS)
			if _, err := d.Occupied(false, Kinds()...); err != nil {
				t.Error(err)
			}
			if s, err := d.Stage(); err != nil {
				t.Error(err)
			} else if err := s.Replace(OVS, false); err != nil {
				t.Error(err)
			} else if err := s.Install(Collection{Kind: OVS}); err != nil {
				t.Error(err)
			}
		}
		if err := os.WriteFile(filepath.Join(top, "wd/manifest.json"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = d.Purge()
		for _, path := range []string{outside, filepath.Join(top, "away/kept")} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("by %q: %v", manifest, err)
			}
		}
	})
}
