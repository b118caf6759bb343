package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// epoch is the time of all files in an image, so that the same files give the same
// image.
var epoch = time.Unix(0, 0).UTC()

// maxLinks bounds the symbolic links in the resolution of a path, as in Linux.
const maxLinks = 40

// rootfs is the content of an image: files of this host, and a few generated files.
type rootfs struct {
	entries map[string]entry  // by absolute path in the image
	moved   map[string]string // folders of this host whose files have other paths in the image
}

// entry is a folder, a symbolic link (link), a file of this host (source) or a
// generated file (content).
type entry struct {
	mode    fs.FileMode
	link    string
	source  string
	content string
	size    int64
	time    time.Time // the zero time for epoch
}

func newRootfs() rootfs {
	r := rootfs{entries: map[string]entry{}, moved: map[string]string{}}
	for _, dir := range []string{"/", "/dev", "/etc", "/proc", "/run", "/sys", "/var"} {
		r.entries[dir] = entry{mode: fs.ModeDir | 0o755}
	}
	r.entries["/tmp"] = entry{mode: fs.ModeDir | fs.ModeSticky | 0o777}
	r.write("/etc/passwd", "root:x:0:0:root:/:/bin/sh\n")
	r.write("/etc/group", "root:x:0:\n")
	r.write("/etc/resolv.conf", "") // every tool warns where it is missing
	return r
}

func (r rootfs) write(path, content string) {
	r.entries[path] = entry{mode: 0o644, content: content, size: int64(len(content))}
}

// add adds a file of this host and the symbolic links in its path, so that the path
// is valid in the image too, and returns the path without links.
func (r rootfs) add(path string) (string, error) {
	if target := r.target(path); target != path {
		return r.addAt(path, target)
	}
	rest := strings.Split(filepath.Clean(path), "/")
	at := "/"
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", fmt.Errorf("%s: too many symbolic links", path)
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			r.entries[next] = entry{mode: fs.ModeSymlink | 0o777, link: target}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(filepath.Clean(target), "/"), rest...)
		case info.IsDir():
			if _, have := r.entries[next]; !have {
				r.entries[next] = entry{mode: fs.ModeDir | 0o755}
			}
			at = next
		case info.Mode().IsRegular():
			// Programs in an image need no other mode bits, in particular no setuid.
			r.entries[next] = entry{mode: 0o444 | info.Mode()&0o111, source: next, size: info.Size()}
			at = next
		default:
			return "", fmt.Errorf("%s is not a regular file", next)
		}
	}
	return at, nil
}

// target returns the path in the image of a file of this host.
func (r rootfs) target(path string) string {
	for from, to := range r.moved {
		if rest, ok := strings.CutPrefix(path, from+"/"); ok {
			return filepath.Join(to, rest)
		}
	}
	return path
}

// addAt adds a file of this host at another path, and returns the file's own path
// without links.
func (r rootfs) addAt(path, target string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	folder := r.addFolder(filepath.Dir(target))
	r.entries[filepath.Join(folder, filepath.Base(target))] = entry{mode: 0o444 | info.Mode()&0o111, source: real, size: info.Size()}
	return real, nil
}

// addFolder adds a folder, which is a link where it is one on this host, and returns its
// path without links.
func (r rootfs) addFolder(path string) string {
	if real, err := r.add(path); err == nil {
		return real
	}
	path = filepath.Join(r.addFolder(filepath.Dir(path)), filepath.Base(path))
	r.entries[path] = entry{mode: fs.ModeDir | 0o755}
	return path
}

// writeTar writes the files as a tar, sorted by path. It stops when ctx ends.
func (r rootfs) writeTar(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	for _, path := range slices.Sorted(maps.Keys(r.entries)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.entries[path].writeTo(t, path); err != nil {
			return fmt.Errorf("packing %s: %w", path, err)
		}
	}
	return t.Close()
}

func (e entry) modified() time.Time {
	if e.time.IsZero() {
		return epoch
	}
	return e.time
}

func (e entry) writeTo(t *tar.Writer, path string) error {
	header := &tar.Header{
		Name: "." + path, Mode: int64(e.mode.Perm()), ModTime: e.modified(),
		Typeflag: tar.TypeReg, Size: e.size, Linkname: e.link, Format: tar.FormatPAX,
	}
	switch {
	case e.mode.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name = strings.TrimSuffix(header.Name, "/") + "/"
		if e.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
	case e.link != "":
		header.Typeflag = tar.TypeSymlink
	}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	content, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	// tar reports a file whose size has changed.
	_, err = io.Copy(t, content)
	return err
}

// open opens the content of a file.
func (e entry) open() (io.ReadCloser, error) {
	if e.source == "" {
		return io.NopCloser(strings.NewReader(e.content)), nil
	}
	return os.Open(e.source)
}
