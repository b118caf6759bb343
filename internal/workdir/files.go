package workdir

import (
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

// ReadText reads a text of a workdir. It follows no link and waits for no pipe,
// because another person may have made the workdir.
func ReadText(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxText {
		return nil, fmt.Errorf("%s: not a regular file, or larger than %d MiB", path, MaxText>>20)
	}
	text := make([]byte, info.Size())
	n, err := io.ReadFull(f, text)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // it became shorter meanwhile
	}
	return text[:n], err
}

// ReadJSON reads the JSON file at path into v.
func ReadJSON(path string, v any) error {
	text, err := ReadText(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// WriteJSON writes v to path. A reader sees the old file or the new one, never a part.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteFile(path, append(text, '\n'), 0o600)
}

// WriteFile writes a whole file under a temporary name, syncs it and renames it.
// The new file survives a power cut.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
