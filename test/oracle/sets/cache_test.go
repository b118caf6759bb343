package sets

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestKeptSetsAreTakenOnlyIfTheyAreWhatWasRecorded changes what a folder of recorded sets holds, in each way.
func TestKeptSetsAreTakenOnlyIfTheyAreWhatWasRecorded(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, recipe string
		change       func(t *testing.T, folder string)
		recordings   int
	}{
		{"as recorded", "lab 1", func(*testing.T, string) {}, 1},
		{"a file has another byte", "lab 1", func(t *testing.T,
			folder string) {
			write(t, filepath.Join(folder, "s/packets.json"), "{]")
		}, 2},
		{"a file is missing", "lab 1", func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, "s/packets.json")); err != nil {
				t.Fatal(err)
			}
		}, 2},
		{"a file was added", "lab 1", func(t *testing.T, folder string) { write(t, filepath.Join(folder, "s/nodes/n1"), "") },
			2},
		{"a link leads elsewhere", "lab 1", func(t *testing.T, folder string) {
			if err := os.Symlink("/etc", filepath.Join(folder, "s/nodes")); err != nil {
				t.Fatal(err)
			}
		}, 2},
		{"the sums are missing", "lab 1", func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, sumsFile)); err != nil {
				t.Fatal(err)
			}
		}, 2},
		{"another lab made it", "lab 2", func(*testing.T, string) {}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "sets", "key")
			recordings := 0
			record := func(staged string) error {
				recordings++
				write(t, filepath.Join(staged, "s/packets.json"), "{}")
				return nil
			}
			if err := keep(folder, "lab 1", io.Discard, record); err != nil {
				t.Fatal(err)
			}
			c.change(t, folder)
			for range 2 { // the second time, what was recorded anew is taken
				if err := keep(folder, c.recipe, io.Discard, record); err != nil {
					t.Fatal(err)
				}
			}
			expect.Equal(t, recordings, c.recordings, "recordings")
			expect.Equal(t, intact(folder, c.recipe), nil, "what is wrong with the folder")
		})
	}
}

// TestRecordingThatFailsLeavesNothing fails in the middle of a recording.
func TestRecordingThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	failed := errors.New("the lab failed")
	err := keep(filepath.Join(dir, "key"), "lab 1", io.Discard, func(staged string) error {
		return errors.Join(os.WriteFile(filepath.Join(staged, "part"), nil, 0o644), failed)
	})
	left, listErr := os.ReadDir(dir)
	if !errors.Is(err, failed) || listErr != nil || len(left) > 0 {
		t.Errorf("%v; left %v (%v)", err, left, listErr)
	}
}
