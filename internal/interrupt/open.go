package interrupt

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Open opens the regular file that a user names, or the pipe of a shell's <(...), for reads
// that fail once ctx has ended. Anything else is an error at once: opening a FIFO waits for a
// writer, and a device may have no end.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	isPipe := isShellPipe(path)
	if err := CheckRegular(path); err != nil && !isPipe {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if isPipe {
		return file{Pipe(ctx, f), f}, nil
	}
	return file{Reader(ctx, f), f}, nil
}

// file is an open file whose reads end with a context.
type file struct {
	io.Reader
	io.Closer
}

// isShellPipe reports whether a path is a pipe that is an open file of this process, as a shell
// writes <(...).
func isShellPipe(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		return false
	}
	path = filepath.Clean(path)
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// CheckRegular returns an error for a path that is not a regular file, with what it is.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	what := "a device"
	switch info.Mode().Type() {
	case 0:
		return nil
	case fs.ModeDir:
		what = "a folder"
	case fs.ModeNamedPipe:
		what = "a FIFO"
	case fs.ModeSocket:
		what = "a socket"
	}
	return fmt.Errorf("%s is %s, not a regular file", path, what)
}
