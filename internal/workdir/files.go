package workdir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxText is the size in bytes of the largest text that is read into memory. The
// JSON files of a node with 20,000 files or 10,000 rejected entries take a few MB,
// and the output of a command about a whole node less.
const MaxText = 32 << 20

// ReadJSON reads the JSON file at path into v. It follows no link and waits for no
// pipe, because another person may have made the workdir.
func ReadJSON(path string, v any) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxText {
		return fmt.Errorf("%s: not a regular file, or larger than %d MiB", path, MaxText>>20)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxText)) // it may grow meanwhile
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// WriteJSON writes v to path, first under a temporary name. A reader sees the old file
// or the new one, never a part, and the new file survives a power cut.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = cmp.Or(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncFolder(filepath.Dir(path))
}
