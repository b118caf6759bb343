package snapshot

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/workdir"
)

// TestReadersShareFiles has readers of a snapshot read one file, each from its beginning: it is opened once, and once more after it has
// changed. Close closes it.
func TestReadersShareFiles(t *testing.T) {
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(wd.Path(), "text")
	s := Of(wd)
	read := func() string {
		t.Helper()
		of, err := s.Nodes()[0].Workdir()
		if err != nil {
			t.Fatal(err)
		}
		opened, err := of.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(opened)
		if err != nil || opened.Close() != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := descriptors(t, path)
	for _, text := range []string{"recorded", "changed later"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if first, second := read(), read(); first != text || second != text {
			t.Errorf("read %q and %q, not %q", first, second, text)
		}
	}
	if n := descriptors(t, path) - before; n != 2 {
		t.Errorf("%d descriptors are open, not two", n)
	}
	s.Close()
	if n := descriptors(t, path) - before; n != 0 {
		t.Errorf("%d descriptors are open after Close", n)
	}
}

// descriptors returns how many descriptors of this process are of a file.
func descriptors(t *testing.T, path string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if of, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err == nil && strings.HasPrefix(of, path) {
			n++
		}
	}
	return n
}
