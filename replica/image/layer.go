package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// The names by which a layer removes what is in the layers below (OCI image
// specification, layer.md). The names with the metadata prefix belong to aufs.
const (
	whiteoutPrefix   = ".wh."
	whiteoutMetadata = ".wh..wh."
	whiteoutOpaque   = ".wh..wh..opq"
)

// writeLayer writes the entries of a layer, an uncompressed tar, over the entries of earlier
// layers. It reads the tar to its end.
func (w *writer) writeLayer(ctx context.Context, from io.Reader) error {
	w.written = map[string]bool{}
	from = interrupt.Reader(ctx, w.meter.Unpacked(from))
	for entries := tar.NewReader(from); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from)
			return err
		}
		if err == nil {
			err = w.meter.Entry()
		}
		if err == nil {
			err = w.entry(header, entries)
		}
		if err != nil {
			return err
		}
	}
}

// entry writes one entry of a layer.
func (w *writer) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := pathInRoot(header.Name)
	switch {
	case err != nil:
		return err
	case name == "." && header.Typeflag == tar.TypeDir:
		return nil
	case name == ".":
		return fmt.Errorf("%w: its root is not a folder", ErrRefused)
	case strings.HasPrefix(path.Base(name), whiteoutPrefix):
		return w.whiteout(name)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return w.writeFolder(name, fs.FileMode(header.Mode))
	case tar.TypeReg, tar.TypeGNUSparse:
		if archive.IsSparse(header) { // package tar writes its holes as zeros
			content = w.meter.Unpacked(content)
		}
		_, err := w.writeFile(name, fs.FileMode(header.Mode), header.ModTime, content)
		return err
	case tar.TypeSymlink:
		return w.writeLink(name, header.Linkname)
	case tar.TypeLink:
		return w.writeHardLink(name, header.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		_, err := w.preparePath(name, false) // it hides what is below it, and is not made
		return err
	}
	return fmt.Errorf("%w: %q has the unknown type %q", ErrRefused, shortened(name), header.Typeflag)
}

// whiteout removes what the layers below have.
func (w *writer) whiteout(name string) error {
	parent, err := w.folder(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if base == whiteoutOpaque {
		return w.hideIn(parent)
	}
	if strings.HasPrefix(base, whiteoutMetadata) {
		return nil
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("%w: %q: the name of the file to remove is missing", ErrRefused, shortened(name))
	}
	return w.hide(path.Join(parent, hidden))
}

// hide removes a path, except for what the current layer wrote.
func (w *writer) hide(name string) error {
	if !w.written[name] {
		return w.remove(name)
	}
	info, err := w.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	return w.hideIn(name)
}

// hideIn removes what is in a folder, except for what the current layer wrote.
func (w *writer) hideIn(folder string) error {
	opened, err := w.root.Open(folder)
	if err != nil {
		return err
	}
	names, err := opened.Readdirnames(-1)
	opened.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.hide(path.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
