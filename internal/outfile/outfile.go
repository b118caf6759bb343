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

	"ovs-offline/internal/temporary"
)

// Write calls write with a new file, which then gets its name, and returns the file's
// size in bytes. If the file exists and replace is not set, the error wraps
// fs.ErrExist.
func Write(name string, replace bool, write func(io.Writer) error) (size int64, err error) {
	if _, err := os.Lstat(name); err == nil && !replace {
		return 0, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	f, release, err := temporary.File(filepath.Dir(name), "."+filepath.Base(name)+".ovs-offline-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // fails once the file has its final name
	defer release()
	out := bufio.NewWriterSize(f, 1<<20)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return 0, fmt.Errorf("saving %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
