package workdir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// MaxText is the maximum size in bytes of a text that is read into memory. The JSON
// files of a node with 20,000 files or 10,000 rejected entries take a few MB, and the
// output of a command that covers a whole node takes less.
const MaxText = 32 << 20

// maxObjects is the number of JSON objects that a file may hold. The report of a node
// with all lists at their bounds has about 40,000.
const maxObjects = 500_000

// OpenCollected opens a collected file; ok is false if it was not collected.
func OpenCollected(path string) (f *os.File, ok bool, err error) {
	f, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return f, err == nil, err
}

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
	text, err := io.ReadAll(io.LimitReader(f, MaxText)) // the file may have grown meanwhile
	if err != nil {
		return err
	}
	// The decoder would use gigabytes for 32 MiB of repeated {}.
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return fmt.Errorf("%s: more than %d JSON objects", path, maxObjects)
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

// syncFolder waits until all renames and new files in a folder would survive a power
// cut, on any file system. Some network file systems answer EINVAL; they need no sync.
func syncFolder(folder string) error {
	err := syncFile(folder)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncTree waits until a folder and everything below it is on disk. It syncs many
// files at once, because a file system then writes its journal once for all of them.
func syncTree(folder string) error {
	var group errgroup.Group
	group.SetLimit(16)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return syncFolder(path)
		}
		group.Go(func() error { return syncFile(path) })
		return nil
	})
	return errors.Join(err, group.Wait())
}
