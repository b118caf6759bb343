package workdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/workdir"
)

// TestEmptyFileAfterAPowerCut checks that a file that was not synced, and that a power cut
// left empty, counts as missing, and that a manifest in that state is an error.
func TestEmptyFileAfterAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var v map[string]int
	if err := workdir.WriteUnsynced(path, map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if err := workdir.ReadUnsynced(path, &v); err != nil || v["a"] != 1 {
		t.Errorf("read %v, %v", v, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := workdir.ReadUnsynced(path, &v); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty unsynced file: %v", err)
	}
	if err := workdir.ReadJSON(path, &v); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty synced file: %v", err)
	}
}
