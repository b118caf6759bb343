package rootfs

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
// specification, layer.md). The names with the metadata prefix are those of aufs.
const (
	whiteoutPrefix   = ".wh."
	whiteoutMetadata = ".wh..wh."
	whiteoutOpaque   = ".wh..wh..opq"
)

// Layer writes the entries of a layer, an uncompressed tar, over those of the layers
// before. It reads r to its end.
func (w *Writer) Layer(ctx context.Context, r io.Reader) error {
	w.layer = map[string]bool{}
	r = interrupt.Reader(ctx, w.meter.Unpacked(r))
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err == nil {
			err = w.meter.Entry()
		}
		if err == nil {
			err = w.entry(h, entries)
		}
		if err != nil {
			return err
		}
	}
}

// entry writes one entry of a layer.
func (w *Writer) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := local(h.Name)
	switch {
	case err != nil:
		return err
	case name == "." && h.Typeflag == tar.TypeDir:
		return nil
	case name == ".":
		return fmt.Errorf("%w: its root is not a folder", ErrRefused)
	case strings.HasPrefix(path.Base(name), whiteoutPrefix):
		return w.whiteout(name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return w.writeFolder(name, fs.FileMode(h.Mode))
	case tar.TypeReg, tar.TypeGNUSparse:
		if archive.IsSparse(h) { // package tar writes its holes as zeros
			content = w.meter.Unpacked(content)
		}
		_, err := w.writeFile(name, fs.FileMode(h.Mode), h.ModTime, content)
		return err
	case tar.TypeSymlink:
		return w.writeLink(name, h.Linkname)
	case tar.TypeLink:
		return w.writeHardLink(name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		_, err := w.place(name, false) // it hides what is below it, and is not made
		return err
	}
	return fmt.Errorf("%w: %q has the unknown type %q", ErrRefused, shortened(name), h.Typeflag)
}

// whiteout removes what the layers below have.
func (w *Writer) whiteout(name string) error {
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
		return fmt.Errorf("%w: %q names nothing to remove", ErrRefused, shortened(name))
	}
	return w.hide(path.Join(parent, hidden))
}

// hide removes a path, except for what the current layer wrote.
func (w *Writer) hide(name string) error {
	if !w.layer[name] {
		return w.remove(name)
	}
	info, err := w.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	return w.hideIn(name)
}

// hideIn removes what is in a folder, except for what the current layer wrote.
func (w *Writer) hideIn(folder string) error {
	f, err := w.root.Open(folder)
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	f.Close()
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
