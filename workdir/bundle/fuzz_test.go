package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir"
)

// FuzzOpen opens bundles with any head and any manifest: each file that is expected is one of a workdir and below it.
func FuzzOpen(f *testing.F) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstd.MinWindowSize))
	if err != nil {
		f.Fatal(err)
	}
	const manifest = `{"format":1,"collections":[{"kind":"ovs","files":[{"path":"db/ovs/conf.db","size":1,"sha256":"a"}]}]}`
	for _, text := range []string{
		`{"format":1,"workdir":1}`, `{"format":1,"workdir":1,"byHand":[{"path":"recorded/../../x","size":1}]}`,
		`{"format":4,"workdir":1,"nodes":[{"name":"a"},{"name":"../b"}],"image":{"size":-1},"page":{"size":1e99}}`, "[]", "null",
	} {
		f.Add(headName, text, manifestName, manifest)
		f.Add(headName, text, "a/"+manifestName, manifest)
	}
	f.Fuzz(func(t *testing.T, first, head, second, manifest string) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range []entry{plain(first, head), plain(second, manifest)} {
			if err := w.WriteHeader(&e.header); err != nil {
				return // no name of a file in an archive
			}
			if _, err := w.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), bytes.NewReader(zip.EncodeAll(b.Bytes(), nil)), archive.Default())
		if err != nil {
			if !errors.Is(err, ErrNotBundle) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) && !errors.Is(err, archive.ErrLimit) {
				t.Errorf("an error of no class: %v", err)
			}
			return
		}
		defer r.Close()
		for name, of := range r.expected {
			if !filepath.IsLocal(name) || !workdir.IsData(of.file.Path) {
				t.Errorf("%q is expected", name)
			}
		}
	})
}
