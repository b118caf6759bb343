package snapshot

import (
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/workdir"
)

// TestReadersShareFiles has readers of a snapshot read one file, each from its beginning: it is opened once, and once
// more after it has changed. Close closes it.
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

// TestManyFilesLeaveDescriptors has a thousand files read, and then a database: all are read, and 800 at most stay
// open.
func TestManyFilesLeaveDescriptors(t *testing.T) {
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := Of(wd)
	defer s.Close()
	of, err := s.Nodes()[0].Workdir()
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(wd.Path(), "conf.db")
	schema := `{"name":"Open_vSwitch","tables":{}}`
	text := fmt.Sprintf("OVSDB JSON %d %x\n%s", len(schema), sha1.Sum([]byte(schema)), schema)
	if err := os.WriteFile(database, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		path := filepath.Join(wd.Path(), fmt.Sprint("text", i))
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := of.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(opened); err != nil || string(text) != path || opened.Close() != nil {
			t.Fatalf("read %q of %s: %v", text, path, err)
		}
	}
	index, err := of.Index(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	index.Close()
	if n := descriptors(t, wd.Path()); n != 800 {
		t.Errorf("%d descriptors are open, not 800", n)
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
