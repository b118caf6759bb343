// Package outfile writes a file that a user asked for. The file appears under its
// name once it is complete: after an error there is no part of it, and an earlier
// file is as it was.
package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/temporary"
)

// Write calls write with a new file, which then gets its name, and returns the file's
// size in bytes. If the file exists and replace is not set, the error wraps
// fs.ErrExist. A FIFO or a device, such as /dev/null, is never replaced, and of a link what it
// leads to is.
func Write(name string, replace bool, write func(io.Writer) error) (size int64, err error) {
	file, err := New(name, replace, write)
	if err != nil {
		return 0, err
	}
	defer file.Discard()
	return file.Size, file.Commit()
}

// File is a complete file that has no name yet.
type File struct {
	Size    int64 // in bytes
	name    string
	made    *os.File
	release func()
}

// New works like Write, but the file gets its name from Commit: several files are complete, and on the disk, before the
// first of them gets its name.
func New(name string, replace bool, write func(io.Writer) error) (made *File, err error) {
	if info, err := os.Lstat(name); err == nil {
		if err := interrupt.CheckRegular(name); err != nil {
			return nil, err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			if name, err = filepath.EvalSymlinks(name); err != nil {
				return nil, err
			}
		}
		if !replace {
			return nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
	}
	file, release, err := temporary.File(filepath.Dir(name), "."+filepath.Base(name)+".ovs-offline-")
	if err != nil {
		return nil, err
	}
	made = &File{name: name, made: file, release: release}
	out := bufio.NewWriterSize(file, 1<<20)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), file.Sync())
	}
	if err == nil {
		made.Size, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		made.Discard()
		return nil, fmt.Errorf("saving %s: %w", name, err)
	}
	return made, nil
}

// Commit gives the file its name, which it has after a power cut, too.
func (f *File) Commit() error {
	err := os.Rename(f.made.Name(), f.name)
	if err == nil {
		err = SyncFolder(filepath.Dir(f.name))
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", f.name, err)
	}
	return nil
}

// SyncFolder waits until all renames and new files in a folder would survive a power
// cut, on any file system. Some network file systems answer EINVAL; they need no sync.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// Discard removes the file unless it has its name.
func (f *File) Discard() {
	os.Remove(f.made.Name()) // fails once the file has its name
	f.release()
}
