package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
