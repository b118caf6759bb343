package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// copyFolder copies the root file system in a folder. File systems that are mounted in the
// folder are left out. It returns the digest of the paths, modes and contents, and the paths
// that the caller may not read. progress may be nil; it gets the bytes that were copied.
func (w *writer) copyFolder(ctx context.Context, source string, progress archive.Progress) (digest string, unreadable []string, err error) {
	from, err := os.OpenRoot(source)
	if err != nil {
		return "", nil, err
	}
	defer from.Close()
	files := &copying{writer: w, ctx: ctx, from: from}
	if files.top, err = from.Stat("."); err != nil {
		return "", nil, err
	}
	if files.target, err = w.root.Stat("."); err != nil {
		return "", nil, err
	}
	w.written = map[string]bool{}
	sum := sha256.New()
	err = fs.WalkDir(from.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if files.isTarget(entry) {
			return fs.SkipDir
		}
		if err := w.meter.Entry(); err != nil {
			return err
		}
		line := ""
		if err != nil {
			err = &sourceError{err}
		} else {
			line, err = files.entry(name)
			if progress != nil {
				progress(w.size, 0)
			}
		}
		var unread *sourceError
		if errors.As(err, &unread) && errors.Is(err, fs.ErrPermission) && name != "." {
			unreadable = append(unreadable, name)
			return nil
		}
		fmt.Fprintf(sum, "%q %s\n", name, line)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), unreadable, err
}

// sourceError is an error of the source, not of the copy.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// copying is one run of copyFolder.
type copying struct {
	*writer
	ctx    context.Context
	from   *os.Root
	top    fs.FileInfo // the source
	target fs.FileInfo // the folder that is written to, which may be below the source
}

// isTarget reports whether a folder of the source is the one that is written to.
func (c *copying) isTarget(entry fs.DirEntry) bool {
	if entry == nil || !entry.IsDir() {
		return false
	}
	info, err := entry.Info()
	return err == nil && os.SameFile(info, c.target)
}

// entry copies one file, folder or link, and returns a description for the digest.
func (c *copying) entry(name string) (string, error) {
	info, err := c.from.Lstat(name)
	if err != nil {
		return "", &sourceError{err}
	}
	mode := info.Mode()
	switch {
	case name == ".":
		return "", nil
	case mode.IsDir():
		if err := c.writeFolder(name, mode); err != nil {
			return "", err
		}
		if !sameDevice(info, c.top) {
			err = fs.SkipDir
		}
		return fmt.Sprintf("folder %o", mode.Perm()), err
	case mode&fs.ModeSymlink != 0:
		to, err := c.from.Readlink(name)
		if err != nil {
			return "", &sourceError{err}
		}
		return fmt.Sprintf("link %q", to), c.writeLink(name, to)
	case mode.IsRegular():
		sum, err := c.file(name, info)
		return fmt.Sprintf("file %o %x", mode.Perm(), sum), err
	}
	return "", nil // a device, a FIFO or a socket
}

func (c *copying) file(name string, info fs.FileInfo) ([]byte, error) {
	file, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &sourceError{err}
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%s changed while it was copied", name)
	}
	return c.writeFile(name, info.Mode(), info.ModTime(), interrupt.Reader(c.ctx, c.meter.Unpacked(file)))
}

func sameDevice(a, b fs.FileInfo) bool {
	first, firstOK := a.Sys().(*syscall.Stat_t)
	second, secondOK := b.Sys().(*syscall.Stat_t)
	return firstOK && secondOK && first.Dev == second.Dev
}
