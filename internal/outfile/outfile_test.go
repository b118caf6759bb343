package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAFileAppearsOnceItIsComplete checks that what was there stays until the new file
// is complete, and that nothing else is left in the folder.
func TestAFileAppearsOnceItIsComplete(t *testing.T) {
	name := filepath.Join(t.TempDir(), "node.svg")
	put := func(text string, fault error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fault)
		}
	}
	check := func(want string) {
		t.Helper()
		text, err := os.ReadFile(name)
		if want == "" && !errors.Is(err, fs.ErrNotExist) || string(text) != want {
			t.Errorf("the file holds %q, %v; want %q", text, err, want)
		}
		if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != min(1, len(want)) {
			t.Errorf("the folder holds %v", entries)
		}
	}
	failed := errors.New("failed")
	if _, err := Write(name, false, put("part", failed)); !errors.Is(err, failed) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	check("")
	if size, err := Write(name, false, put("first", nil)); size != 5 || err != nil {
		t.Error(size, err)
	}
	check("first")
	if _, err := Write(name, false, put("second", nil)); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if _, err := Write(name, true, put("second", failed)); !errors.Is(err, failed) {
		t.Error(err)
	}
	check("first")
	if _, err := Write(name, true, put("second", nil)); err != nil {
		t.Error(err)
	}
	check("second")
}

// TestOnlyRegularFilesAreReplaced names a FIFO and links: root would otherwise lose /dev/null or
// /dev/stdout.
func TestOnlyRegularFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	fifo, file, link, toFIFO := filepath.Join(dir, "fifo"), filepath.Join(dir, "file"), filepath.Join(dir, "link"),
		filepath.Join(dir, "to-fifo")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(file, nil, 0o600), os.Symlink(file, link),
		os.Symlink(fifo, toFIFO)); err != nil {
		t.Fatal(err)
	}
	put := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	for _, name := range []string{fifo, toFIFO} {
		if _, err := Write(name, true, put); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Write(link, true, put); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); string(text) != "new" || err != nil {
		t.Errorf("what the link leads to holds %q, %v", text, err)
	}
	for name, want := range map[string]fs.FileMode{fifo: fs.ModeNamedPipe, link: fs.ModeSymlink, toFIFO: fs.ModeSymlink} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
