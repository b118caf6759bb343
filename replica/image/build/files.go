package build

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

// files are the files of a layer: files of this host, and a few generated ones.
type files struct {
	entries map[string]fileEntry // by absolute path in the image
	moved   map[string]string    // folders of this host whose files have other paths in the image
}

// fileEntry is a folder, a symbolic link (link), a file of this host (source) or a
// generated file (content).
type fileEntry struct {
	mode    fs.FileMode
	link    string
	source  string
	content string
	size    int64
	time    time.Time // the zero time for epoch
}

func newFiles() files {
	made := files{entries: map[string]fileEntry{}, moved: map[string]string{}}
	for _, dir := range []string{"/", "/dev", "/etc", "/proc", "/run", "/sys", "/var"} {
		made.entries[dir] = fileEntry{mode: fs.ModeDir | 0o755}
	}
	made.entries["/tmp"] = fileEntry{mode: fs.ModeDir | fs.ModeSticky | 0o777}
	made.write("/etc/passwd", "root:x:0:0:root:/:/bin/sh\n")
	made.write("/etc/group", "root:x:0:\n")
	made.write("/etc/resolv.conf", "") // every tool warns where it is missing
	return made
}

func (f files) write(path, content string) {
	f.entries[path] = fileEntry{mode: 0o644, content: content, size: int64(len(content))}
}

// add adds a file of this host and the symbolic links in its path, so that the path
// is valid in the image too, and returns the path without links.
func (f files) add(path string) (string, error) {
	if target := f.target(path); target != path {
		return f.addAt(path, target)
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
			f.entries[next] = fileEntry{mode: fs.ModeSymlink | 0o777, link: target}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(filepath.Clean(target), "/"), rest...)
		case info.IsDir():
			if _, have := f.entries[next]; !have {
				f.entries[next] = fileEntry{mode: fs.ModeDir | 0o755}
			}
			at = next
		case info.Mode().IsRegular():
			// Programs in an image need no other mode bits, in particular no setuid.
			f.entries[next] = fileEntry{mode: 0o444 | info.Mode()&0o111, source: next, size: info.Size()}
			at = next
		default:
			return "", fmt.Errorf("%s is not a regular file", next)
		}
	}
	return at, nil
}

// target returns the path in the image of a file of this host.
func (f files) target(path string) string {
	for from, to := range f.moved {
		if rest, ok := strings.CutPrefix(path, from+"/"); ok {
			return filepath.Join(to, rest)
		}
	}
	return path
}

// addAt adds a file of this host at another path, and returns the file's own path
// without links.
func (f files) addAt(path, target string) (string, error) {
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
	folder := f.addFolder(filepath.Dir(target))
	f.entries[filepath.Join(folder, filepath.Base(target))] = fileEntry{mode: 0o444 | info.Mode()&0o111, source: real, size: info.Size()}
	return real, nil
}

// addFolder adds a folder, which is a link where it is one on this host, and returns its
// path without links.
func (f files) addFolder(path string) string {
	if real, err := f.add(path); err == nil {
		return real
	}
	path = filepath.Join(f.addFolder(filepath.Dir(path)), filepath.Base(path))
	f.entries[path] = fileEntry{mode: fs.ModeDir | 0o755}
	return path
}

// writeTar writes the files as a tar, sorted by path. It stops when ctx ends.
func (f files) writeTar(ctx context.Context, to io.Writer) error {
	archive := tar.NewWriter(to)
	for _, path := range slices.Sorted(maps.Keys(f.entries)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.entries[path].writeTo(archive, path); err != nil {
			return fmt.Errorf("packing %s: %w", path, err)
		}
	}
	return archive.Close()
}

func (e fileEntry) modified() time.Time {
	if e.time.IsZero() {
		return epoch
	}
	return e.time
}

func (e fileEntry) writeTo(archive *tar.Writer, path string) error {
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
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	return e.copyTo(archive) // package tar reports a file whose size has changed
}

// copyTo writes the content of a file.
func (e fileEntry) copyTo(to io.Writer) error {
	if e.source == "" {
		_, err := io.WriteString(to, e.content)
		return err
	}
	source, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = io.Copy(to, source)
	return err
}
