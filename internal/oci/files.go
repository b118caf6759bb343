package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/rootfs"
)

// folderFiles are the files in a folder, and never outside of it.
type folderFiles struct{ root *os.Root }

func openFolder(folder string) (folderFiles, error) {
	root, err := os.OpenRoot(folder)
	return folderFiles{root}, err
}

func (f folderFiles) open(name string) (io.ReadCloser, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%w: %s is not a regular file", rootfs.ErrRefused, name)
	}
	return file, nil
}

func (f folderFiles) size(name string) int64 {
	info, err := f.root.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (f folderFiles) Close() error { return f.root.Close() }

// tarFiles are the files in a tar.
type tarFiles struct {
	file    *os.File
	entries map[string]section
	links   map[string]string
}

// section is the place of a file in a tar, in bytes.
type section struct{ offset, size int64 }

// openTar opens a tar. It decompresses a compressed one first:
// what is at its beginning may refer to what is at its end.
func openTar(ctx context.Context, file string, o Options) (*tarFiles, error) {
	if err := interrupt.CheckRegular(file); err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	plain, err := decompressed(ctx, f, o)
	if plain != f {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	t := &tarFiles{file: plain, entries: map[string]section{}, links: map[string]string{}}
	if err := t.index(ctx, o.Limits); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// decompressed returns f, at its beginning, or a file without a name that holds its
// decompressed content.
func decompressed(ctx context.Context, f *os.File, o Options) (*os.File, error) {
	packed := &packedBytes{progress: o.Progress}
	if info, err := f.Stat(); err == nil {
		packed.total = info.Size()
	}
	content, compressed, err := archive.Decompress(ctx, interrupt.Reader(ctx, packed.of(f)))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if !compressed {
		_, err := f.Seek(0, io.SeekStart)
		return f, err
	}
	plain, err := os.CreateTemp(o.Scratch, "archive-")
	if err != nil {
		return nil, err
	}
	os.Remove(plain.Name())
	meter := archive.New(o.Limits, packed.read.Load)
	if _, err = io.Copy(plain, meter.Unpacked(content)); err == nil {
		_, err = plain.Seek(0, io.SeekStart)
	}
	if err != nil {
		plain.Close()
		return nil, err
	}
	return plain, nil
}

// index records where the files are.
func (t *tarFiles) index(ctx context.Context, limits archive.Limits) error {
	meter := archive.New(limits, nil)
	for entries := tar.NewReader(t.file); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSource, err)
		}
		if err := errors.Join(ctx.Err(), meter.Entry()); err != nil {
			return err
		}
		name := path.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeReg && !archive.IsSparse(h):
			offset, err := t.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			t.entries[name] = section{offset, h.Size}
		case h.Typeflag == tar.TypeSymlink: // docker save before version 25 wrote a layer once
			t.links[name] = path.Join(path.Dir(name), h.Linkname)
		case h.Typeflag == tar.TypeLink:
			t.links[name] = path.Clean(h.Linkname)
		}
	}
}

// find returns the place of a file.
func (t *tarFiles) find(name string) (section, bool) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	for range 40 { // as many links as Linux follows
		if s, ok := t.entries[name]; ok {
			return s, true
		}
		to, ok := t.links[name]
		if !ok {
			break
		}
		name = to
	}
	return section{}, false
}

func (t *tarFiles) has(name string) bool {
	_, ok := t.find(name)
	return ok
}

func (t *tarFiles) open(name string) (io.ReadCloser, error) {
	s, ok := t.find(name)
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.file, s.offset, s.size)), nil
}

func (t *tarFiles) size(name string) int64 {
	s, _ := t.find(name)
	return s.size
}

func (t *tarFiles) Close() error { return t.file.Close() }
