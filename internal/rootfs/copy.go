package rootfs

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

// Copied is the result of Copy.
type Copied struct {
	Digest     string   // of the paths, modes and contents, in hexadecimal
	Unreadable []string // the paths that the caller may not read
}

// Copy copies the root file system in a folder. File systems that are mounted in the
// folder are left out. progress may be nil; it gets the bytes that were copied.
func (w *Writer) Copy(ctx context.Context, source string, progress archive.Progress) (Copied, error) {
	from, err := os.OpenRoot(source)
	if err != nil {
		return Copied{}, err
	}
	defer from.Close()
	c := &copying{Writer: w, ctx: ctx, from: from}
	if c.top, err = from.Stat("."); err != nil {
		return Copied{}, err
	}
	if c.target, err = w.root.Stat("."); err != nil {
		return Copied{}, err
	}
	w.layer = map[string]bool{}
	sum := sha256.New()
	err = fs.WalkDir(from.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.isTarget(e) {
			return fs.SkipDir
		}
		if err := w.meter.Entry(); err != nil {
			return err
		}
		line := ""
		if err != nil {
			err = &sourceError{err}
		} else {
			line, err = c.entry(name)
			if progress != nil {
				progress(w.size, 0)
			}
		}
		var unread *sourceError
		if errors.As(err, &unread) && errors.Is(err, fs.ErrPermission) && name != "." {
			c.unreadable = append(c.unreadable, name)
			return nil
		}
		fmt.Fprintf(sum, "%q %s\n", name, line)
		return err
	})
	return Copied{Digest: hex.EncodeToString(sum.Sum(nil)), Unreadable: c.unreadable}, err
}

// sourceError is an error of the source, not of the copy.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// copying is one run of Copy.
type copying struct {
	*Writer
	ctx        context.Context
	from       *os.Root
	top        fs.FileInfo // the source
	target     fs.FileInfo // the folder that is written to, which may be below the source
	unreadable []string
}

// isTarget reports whether a folder of the source is the one that is written to.
func (c *copying) isTarget(e fs.DirEntry) bool {
	if e == nil || !e.IsDir() {
		return false
	}
	info, err := e.Info()
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
	f, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &sourceError{err}
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%s changed while it was copied", name)
	}
	return c.writeFile(name, info.Mode(), info.ModTime(), interrupt.Reader(c.ctx, c.meter.Unpacked(f)))
}

func sameDevice(a, b fs.FileInfo) bool {
	x, xOK := a.Sys().(*syscall.Stat_t)
	y, yOK := b.Sys().(*syscall.Stat_t)
	return xOK && yOK && x.Dev == y.Dev
}
