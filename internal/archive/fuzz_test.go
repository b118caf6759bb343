package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/files"
)

// FuzzRead reads any archive within small limits: nothing comes outside of the spool, whose files are those that are kept.
func FuzzRead(f *testing.F) {
	var plain, packed, zipped bytes.Buffer
	out := tar.NewWriter(&plain)
	for name, kind := range map[string]byte{"a/b": tar.TypeReg, "a/link": tar.TypeSymlink, "../c": tar.TypeReg, "a/d/": tar.TypeDir} {
		if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Linkname: "b", Mode: 0o600}); err != nil {
			f.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		f.Fatal(err)
	}
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(plain.Bytes()); err != nil || gz.Close() != nil {
		f.Fatal(err)
	}
	z := zip.NewWriter(&zipped)
	if w, err := z.Create("a/b.tar"); err != nil {
		f.Fatal(err)
	} else if _, err := w.Write(plain.Bytes()); err != nil || z.Close() != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{plain.Bytes(), packed.Bytes(), zipped.Bytes(), []byte("\xfd7zXZ\x00"), []byte("BZh9"),
		[]byte("\x28\xb5\x2f\xfd"), []byte("7z\xbc\xaf\x27\x1c"), []byte("text\n")} {
		f.Add(seed)
	}
	limits := archive.Limits{Bytes: 4 << 20, FileBytes: 1 << 20, Ratio: 250, Entries: 1000, Files: 100, Links: 100, Nodes: 10, Aside: 10, AsideBytes: 1 << 20}
	keep := func(name string, _ []byte) archive.Keep { return archive.Keep(len(name) % 3) }
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		source, spool := filepath.Join(dir, "source"), filepath.Join(dir, "spool")
		files.Write(t, source, string(content))
		if err := os.Mkdir(spool, 0o700); err != nil {
			t.Fatal(err)
		}
		tree, err := archive.Read(t.Context(), source, spool, keep, limits, func(int64, int64) {})
		if err == nil && len(tree.Files) > limits.Files {
			t.Errorf("%d files are kept", len(tree.Files))
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("beside the spool: %v, %v", entries, err)
		}
	})
}
