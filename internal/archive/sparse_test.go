package archive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTooLargeFileIsRefusedBeforeItIsRead checks a sparse file, alone and in a folder: to copy all
// that the limit allows would take a minute and fill the disk.
func TestTooLargeFileIsRefusedBeforeItIsRead(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "conf.db")
	if err := os.WriteFile(file, []byte("OVSDB JSON 2 0\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 200<<30); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	for _, source := range []string{folder, file} {
		most := int64(0)
		_, err := Read(t.Context(), source, t.TempDir(), func(string, []byte) Keep { return Take }, Default(),
			func(read, _ int64) { most = max(most, read) })
		if !errors.Is(err, ErrLimit) || most > 1<<20 {
			t.Errorf("%s: %d bytes were read, %v", source, most, err)
		}
	}
}
