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

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/temporary"
)

// Write calls write with a new file, which then gets its name, and returns the file's
// size in bytes. If the file exists and replace is not set, the error wraps
// fs.ErrExist. A FIFO or a device, such as /dev/null, is never replaced, and of a link what it
// leads to is.
func Write(name string, replace bool, write func(io.Writer) error) (size int64, err error) {
	if info, err := os.Lstat(name); err == nil {
		if err := interrupt.CheckRegular(name); err != nil {
			return 0, err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			if name, err = filepath.EvalSymlinks(name); err != nil {
				return 0, err
			}
		}
		if !replace {
			return 0, fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
	}
	file, release, err := temporary.File(filepath.Dir(name), "."+filepath.Base(name)+".ovs-offline-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) // fails once the file has its final name
	defer release()
	out := bufio.NewWriterSize(file, 1<<20)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), file.Sync())
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return 0, fmt.Errorf("saving %s: %w", name, err)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
