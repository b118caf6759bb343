package image

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"ovs-offline/internal/archive"
)

// Bounds of a path. Linux has the same for a path in a system call and for the symbolic
// links in it.
const (
	maxPath  = 4096
	maxLinks = 40
	maxDepth = 255 // of folders
)

// writer writes the root file system of an image into a folder, as an ordinary user.
//
// Every file is written through an os.Root of the folder, under a path without symbolic
// links. The folder gets only files, folders and links: no device, FIFO or socket, no owner
// but the caller, no setuid or setgid bit, and no permission to write for other users.
type writer struct {
	root    *os.Root
	meter   *archive.Meter
	written map[string]bool // the paths that the current layer wrote, and the folders above them
	size    int64           // bytes of all written files, including files that a later layer replaced

	lastName, lastFolder string // the last call of folder and its result
}

// newWriter returns a writer into the existing folder dir. The meter bounds what is written.
func newWriter(dir string, meter *archive.Meter) (*writer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &writer{root: root, meter: meter}, nil
}

func (w *writer) close() error { return w.root.Close() }

// folder returns the path without links of a folder of the image. Links lead where they
// lead for a process whose root is the image. Missing folders are made.
func (w *writer) folder(name string) (string, error) {
	if name == w.lastName {
		return w.lastFolder, nil
	}
	at, err := w.findFolder(name)
	if err == nil {
		w.lastName, w.lastFolder = name, at
	}
	return at, err
}

func (w *writer) findFolder(name string) (string, error) {
	at, links := ".", 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		next := path.Join(at, part)
		if part == ".." {
			at = path.Dir(at) // "." stays, as / does
			continue
		}
		info, err := w.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = w.root.Mkdir(next, 0o755)
			at = next
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			if target, err = w.root.Readlink(next); path.IsAbs(target) {
				at = "."
			}
			if links++; links > maxLinks {
				err = fmt.Errorf("%w: too many symbolic links in the path %q", ErrRefused, shortened(name))
			}
			rest = append(strings.Split(target, "/"), rest...)
		case info.IsDir():
			at = next
		default:
			err = fmt.Errorf("%w: %q is below a file", ErrRefused, shortened(name))
		}
		if err != nil {
			return "", err
		}
	}
	return at, bounded(at)
}

// bounded refuses a path that is too long for a system call.
func bounded(name string) error {
	if len(name) > maxPath || strings.Count(name, "/") > maxDepth {
		return fmt.Errorf("%w: the path %q is too long", ErrRefused, shortened(name))
	}
	return nil
}

// pathInRoot returns the path, relative to the root, that a name in an image means: some
// begin with a slash.
func pathInRoot(name string) (string, error) {
	if err := bounded(name); err != nil {
		return "", err
	}
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if name == "" || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%w: the path %q leads out of it", ErrRefused, shortened(name))
	}
	return clean, nil
}

func shortened(name string) string {
	const limit = 200
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "") + "..."
}

// preparePath prepares the path of a new entry: it removes what an earlier layer has there,
// except a folder that stays a folder.
func (w *writer) preparePath(name string, folder bool) (string, error) {
	parent, err := w.folder(path.Dir(name))
	if err != nil {
		return "", err
	}
	target := path.Join(parent, path.Base(name))
	info, err := w.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case folder && info.IsDir():
	default:
		if err := w.remove(target); err != nil {
			return "", err
		}
	}
	w.mark(target)
	return target, nil
}

func (w *writer) remove(name string) error {
	w.lastName, w.lastFolder = "", "" // it may have been there
	return w.root.RemoveAll(name)
}

// mark records that the current layer wrote a path.
func (w *writer) mark(target string) {
	for ; target != "." && !w.written[target]; target = path.Dir(target) {
		w.written[target] = true
	}
}

func (w *writer) writeFolder(name string, mode fs.FileMode) error {
	target, err := w.preparePath(name, true)
	if err != nil {
		return err
	}
	if err := w.root.Mkdir(target, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return w.root.Chmod(target, mode&0o755|0o700) // its owner must be able to remove it
}

// writeFile writes a file, and returns the digest of its content. It keeps the time:
// Python compares it with the one in its compiled modules.
func (w *writer) writeFile(name string, mode fs.FileMode, modified time.Time, content io.Reader) ([]byte, error) {
	target, err := w.preparePath(name, false)
	if err != nil {
		return nil, err
	}
	file, err := w.root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), content)
	w.size += size
	if err == nil {
		err = file.Chmod(mode&0o755 | 0o400)
	}
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		err = w.root.Chtimes(target, modified, modified)
	}
	return sum.Sum(nil), err
}

func (w *writer) writeLink(name, to string) error {
	target, err := w.preparePath(name, false)
	if err != nil {
		return err
	}
	if to == "" || len(to) > maxPath {
		return fmt.Errorf("%w: the symbolic link %q has no valid target", ErrRefused, shortened(name))
	}
	return w.root.Symlink(to, target)
}

// writeHardLink links a file of the image under another name.
func (w *writer) writeHardLink(name, to string) error {
	to, err := pathInRoot(to)
	if err != nil {
		return fmt.Errorf("the hard link %q: %w", shortened(name), err)
	}
	folder, err := w.folder(path.Dir(to))
	if err != nil {
		return err
	}
	source := path.Join(folder, path.Base(to))
	parent, err := w.folder(path.Dir(name))
	if err != nil {
		return err
	}
	if source == path.Join(parent, path.Base(name)) {
		return nil
	}
	target, err := w.preparePath(name, false)
	if err != nil {
		return err
	}
	if err := w.root.Link(source, target); err != nil {
		return fmt.Errorf("%w: the hard link %q: %w", ErrRefused, shortened(name), err)
	}
	return nil
}
