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

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/outfile"
)

// MaxText is the maximum size in bytes of a text that is read into memory. The JSON
// files of a node with 20,000 files or 10,000 rejected entries take a few MB, and the
// output of a command that covers a whole node takes less.
const MaxText = 32 << 20

// maxObjects is the number of JSON objects that a file may hold. The report of a node
// with all lists at their bounds has about 40,000.
const maxObjects = 500_000

// OpenCollected opens a collected file. ok is false, without an error, if it was not collected,
// and with one if it cannot be opened.
func OpenCollected(path string) (file *os.File, ok bool, err error) {
	file, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return file, err == nil, err
}

// CollectedText returns the first MaxText bytes of a collected file, "" if it was not collected, and
// the size of the file.
func CollectedText(path string) (text string, size int64, err error) {
	return (*Data)(nil).CollectedText(path)
}

// openText opens a file of at most MaxText bytes. It follows no link and waits for no pipe,
// because another person may have made the workdir.
func openText(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > MaxText) {
		err = fmt.Errorf("%s: not a regular file, or larger than %d MiB", path, MaxText>>20)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// ReadJSON reads the JSON file at path into value.
func ReadJSON(path string, value any) error {
	text, err := readText(path)
	if err != nil {
		return err
	}
	return parseJSON(path, text, value)
}

// ReadUnsynced reads a file that WriteUnsynced wrote. One that a power cut left empty
// is missing: the error wraps os.ErrNotExist.
func ReadUnsynced(path string, value any) error {
	text, err := readText(path)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return fmt.Errorf("%s is empty: %w", path, os.ErrNotExist)
	}
	return parseJSON(path, text, value)
}

func readText(path string) ([]byte, error) {
	file, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, MaxText)) // the file may have grown meanwhile
}

func parseJSON(path string, text []byte, value any) error {
	// The decoder would use gigabytes for 32 MiB of repeated {}.
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return fmt.Errorf("%s: more than %d JSON objects", path, maxObjects)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// WriteJSON writes a value to path, first under a temporary name. A reader sees the old file
// or the new one, never a part, and the new file survives a power cut.
func WriteJSON(path string, value any) error {
	if err := replaceJSON(path, value, (*os.File).Sync); err != nil {
		return err
	}
	return outfile.SyncFolder(filepath.Dir(path))
}

// WriteUnsynced works like WriteJSON, but does not wait for the disk. It is for files that
// describe running daemons: a power cut ends these, and may leave the file empty.
func WriteUnsynced(path string, value any) error {
	return replaceJSON(path, value, func(*os.File) error { return nil })
}

// replaceJSON writes a value to a temporary file, calls sync on it, and gives it its name.
func replaceJSON(path string, value any, sync func(*os.File) error) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = cmp.Or(err, sync(file), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// syncTree waits until a folder and everything below it is on disk. It syncs many
// files at once, because a file system then writes its journal once for all of them.
func syncTree(folder string) error {
	var group errgroup.Group
	group.SetLimit(16)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		sync := syncFile
		if entry.IsDir() {
			sync = outfile.SyncFolder
		}
		group.Go(func() error { return sync(path) })
		return nil
	})
	return errors.Join(err, group.Wait())
}
