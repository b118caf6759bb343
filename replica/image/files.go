package image

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

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// maxDocument bounds a manifest, an index and a configuration, in bytes. Those of images
// with a hundred layers take less than 100 KiB.
const maxDocument = 4 << 20

// readDocument reads a JSON document of a source.
func readDocument(files fs.FS, name string) ([]byte, error) {
	file, err := openRegular(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing: copy it again", ErrRefused, name)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%w: %s has over %d bytes", ErrRefused, name, maxDocument)
	}
	return text, err
}

// openRegular opens a file of a source, and nothing else: opening a FIFO waits for a writer.
func openRegular(files fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrRefused, name)
	}
	return files.Open(name)
}

// tarFiles are the regular files in a tar.
type tarFiles struct {
	tar     *os.File
	entries map[string]tarFile
	links   map[string]string
}

// tarFile is a file in a tar.
type tarFile struct {
	*io.SectionReader
	info fs.FileInfo
}

func (f tarFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f tarFile) Close() error               { return nil }

// openTar reads where the files of a tar are. It takes over an *os.File.
func openTar(ctx context.Context, from io.Reader, options Options) (*tarFiles, error) {
	plain, err := decompressed(ctx, from, options)
	if file, ok := from.(*os.File); ok && plain != file {
		file.Close()
	}
	if err != nil {
		return nil, err
	}
	files := &tarFiles{tar: plain, entries: map[string]tarFile{}, links: map[string]string{}}
	if err := files.index(ctx, options.Limits); err != nil {
		files.Close()
		return nil, err
	}
	return files, nil
}

// decompressed returns a tar as a file, because its first entry may name its last one. A file
// that is not compressed is returned itself; everything else is written to a file without a
// name, within the limits.
func decompressed(ctx context.Context, from io.Reader, options Options) (*os.File, error) {
	packed := &packedBytes{progress: options.Progress}
	file, isFile := from.(*os.File)
	if isFile {
		if info, err := file.Stat(); err == nil {
			packed.total = info.Size()
		}
	}
	content, compressed, err := archive.Decompress(ctx, interrupt.Reader(ctx, packed.counted(from)))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if isFile && !compressed {
		_, err := file.Seek(0, io.SeekStart)
		return file, err
	}
	plain, err := os.CreateTemp(options.Scratch, "archive-")
	if err != nil {
		return nil, err
	}
	os.Remove(plain.Name())
	meter := archive.New(options.Limits, packed.read.Load)
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
func (f *tarFiles) index(ctx context.Context, limits archive.Limits) error {
	meter := archive.New(limits, nil)
	for entries := tar.NewReader(f.tar); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSource, err)
		}
		if err := errors.Join(ctx.Err(), meter.Entry()); err != nil {
			return err
		}
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeReg && !archive.IsSparse(header):
			offset, err := f.tar.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			f.entries[name] = tarFile{io.NewSectionReader(f.tar, offset, header.Size), header.FileInfo()}
		case header.Typeflag == tar.TypeSymlink: // docker save before version 25 wrote a layer once
			f.links[name] = path.Join(path.Dir(name), header.Linkname)
		case header.Typeflag == tar.TypeLink:
			f.links[name] = path.Clean(header.Linkname)
		}
	}
}

// Open opens a file by its path in the tar, each time at its beginning.
func (f *tarFiles) Open(name string) (fs.File, error) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	for range maxLinks {
		if found, ok := f.entries[name]; ok {
			found.SectionReader = io.NewSectionReader(found, 0, found.Size())
			return found, nil
		}
		to, ok := f.links[name]
		if !ok {
			break
		}
		name = to
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// size returns the size of a file in bytes, 0 if there is none.
func (f *tarFiles) size(name string) int64 {
	info, err := fs.Stat(f, name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (f *tarFiles) has(name string) bool {
	_, err := f.Open(name)
	return err == nil
}

func (f *tarFiles) Close() error { return f.tar.Close() }
