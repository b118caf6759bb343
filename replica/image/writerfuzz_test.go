package image

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/internal/archive"
)

// FuzzLayer checks that no two layers change anything outside of their folder, and that
// what they leave can be removed.
func FuzzLayer(f *testing.F) {
	for _, l := range []layerOf{
		{file("a/b", "x"), folder("c"), with(folder("d"), 0), link("l", "../outside"), hardLink("h", "a/b")},
		{file("l/x", "x"), file("a/.wh.b", ""), file("c/.wh..wh..opq", ""), special('3', "dev/null")},
		{link("d", "/"), file("d/outside", "x"), file("../outside", "x"), hardLink("o", "../outside")},
	} {
		raw, err := io.ReadAll(l.tar(f))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		top := t.TempDir()
		if err := os.WriteFile(filepath.Join(top, "outside"), []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := wholeTree(t, top)
		inside := mkdir(t, filepath.Join(top, "root"))
		w, err := newWriter(inside, archive.New(archive.Limits{Bytes: 1 << 20, Entries: 1000}, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range [][]byte{first, second} {
			_ = w.writeLayer(t.Context(), bytes.NewReader(raw))
		}
		w.close()
		if err := os.RemoveAll(inside); err != nil {
			t.Errorf("what is left cannot be removed: %v", err)
		}
		if after := wholeTree(t, top); !maps.Equal(before, after) {
			t.Errorf("outside of the folder, %q became %q", before, after)
		}
	})
}
