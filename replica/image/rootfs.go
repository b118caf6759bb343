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

// rootfs is the content of an image, by absolute path: files of this host at their own
// paths, and a few generated files.
type rootfs map[string]entry

// entry is a folder, a symbolic link (link), a file of this host (source) or a
// generated file (content).
type entry struct {
	mode    fs.FileMode
	link    string
	source  string
	content string
	size    int64
}

func newRootfs() rootfs {
	r := rootfs{}
	for _, dir := range []string{"/", "/dev", "/etc", "/proc", "/run", "/sys", "/var"} {
		r[dir] = entry{mode: fs.ModeDir | 0o755}
	}
	r["/tmp"] = entry{mode: fs.ModeDir | fs.ModeSticky | 0o777}
	r.write("/etc/passwd", "root:x:0:0:root:/:/bin/sh\n")
	r.write("/etc/group", "root:x:0:\n")
	r.write("/etc/resolv.conf", "") // every tool warns where it is missing
	return r
}

func (r rootfs) write(path, content string) {
	r[path] = entry{mode: 0o644, content: content, size: int64(len(content))}
}

// add adds a file of this host and the symbolic links in its path, so that the path
// is valid in the image too, and returns the path without links.
func (r rootfs) add(path string) (string, error) {
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
			r[next] = entry{mode: fs.ModeSymlink | 0o777, link: target}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(filepath.Clean(target), "/"), rest...)
		case info.IsDir():
			if _, have := r[next]; !have {
				r[next] = entry{mode: fs.ModeDir | 0o755}
			}
			at = next
		case info.Mode().IsRegular():
			// Programs in an image need no other mode bits, in particular no setuid.
			r[next] = entry{mode: 0o444 | info.Mode()&0o111, source: next, size: info.Size()}
			at = next
		default:
			return "", fmt.Errorf("%s is not a regular file", next)
		}
	}
	return at, nil
}

// writeTar writes the files as a tar, sorted by path. It stops when ctx ends.
func (r rootfs) writeTar(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	for _, path := range slices.Sorted(maps.Keys(r)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r[path].writeTo(t, path); err != nil {
			return fmt.Errorf("packing %s: %w", path, err)
		}
	}
	return t.Close()
}

func (e entry) writeTo(t *tar.Writer, path string) error {
	header := &tar.Header{
		Name: "." + path, Mode: int64(e.mode.Perm()), ModTime: epoch,
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
	if e.source == "" {
		_, err := io.WriteString(t, e.content)
		return err
	}
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	// tar reports a file whose size has changed.
	_, err = io.Copy(t, f)
	return err
}
