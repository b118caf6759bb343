package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"runtime"
	"sync/atomic"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/rootfs"
)

// Image is an image that is open for reading.
type Image struct {
	ID     string // digest of the configuration; "" for a folder
	Name   string // the name that the source has for it, "" for none
	Folder string // path of the folder that holds the root file system; "" for an image of layers

	layers []layer
	files  io.Closer // the source; nil if nothing is open

	options Options
}

// layer is a layer of an image.
type layer struct {
	diff v1.Hash // digest of the unpacked layer
	size int64   // packed, in bytes
	open func() (io.ReadCloser, error)
}

// Close closes the source.
func (i *Image) Close() error {
	if i.files == nil {
		return nil
	}
	return i.files.Close()
}

// Unpacked is the result of Unpack.
type Unpacked struct {
	ID         string   // that of the image, or of a folder the digest of its files
	Size       int64    // bytes
	Unreadable []string // paths of a folder that the caller may not read, which are left out
}

// Unpack writes the root file system into the existing folder dir. The digest of each
// layer is checked, but only at its end: after an error, dir holds a part of the image.
func (i *Image) Unpack(ctx context.Context, dir string) (Unpacked, error) {
	if i.Folder != "" {
		return i.copyFolder(ctx, dir)
	}
	packed := &packedBytes{progress: i.options.Progress}
	for _, l := range i.layers {
		packed.total += l.size
	}
	w, err := rootfs.New(dir, archive.New(i.options.Limits, packed.read.Load))
	if err != nil {
		return Unpacked{}, err
	}
	defer w.Close()
	for n, l := range i.layers {
		if err := l.unpack(ctx, w, packed); err != nil {
			return Unpacked{}, fmt.Errorf("layer %d of %d: %w", n+1, len(i.layers), err)
		}
	}
	return Unpacked{ID: i.ID, Size: w.Size()}, nil
}

func (i *Image) copyFolder(ctx context.Context, dir string) (Unpacked, error) {
	w, err := rootfs.New(dir, archive.New(i.options.Limits, nil))
	if err != nil {
		return Unpacked{}, err
	}
	defer w.Close()
	copied, err := w.Copy(ctx, i.Folder, i.options.Progress)
	if err != nil {
		return Unpacked{}, fmt.Errorf("copying %s: %w", i.Folder, err)
	}
	return Unpacked{ID: "sha256:" + copied.Digest, Size: w.Size(), Unreadable: copied.Unreadable}, nil
}

// unpack writes the files of the layer, and checks its digest.
func (l layer) unpack(ctx context.Context, w *rootfs.Writer, packed *packedBytes) error {
	in, err := l.open()
	if err != nil {
		return err
	}
	defer in.Close()
	raw := interrupt.Reader(ctx, packed.of(in))
	content, _, err := archive.Decompress(ctx, raw)
	if err != nil {
		return err
	}
	sum := digested{content, sha256.New()}
	err = w.Layer(ctx, sum)
	content.Close() // nothing else reads raw from here on
	if err != nil {
		return err
	}
	if got := sum.hash(); got != l.diff {
		return fmt.Errorf("%w: the digest of the layer is %v, but the image's configuration has %v: copy or pull it again", rootfs.ErrRefused, got, l.diff)
	}
	_, err = io.Copy(io.Discard, raw) // a registry's reader checks the packed layer at its end
	return err
}

// packedBytes counts the packed bytes that are read of all layers.
type packedBytes struct {
	read     atomic.Int64
	total    int64
	progress archive.Progress // may be nil
}

func (p *packedBytes) of(r io.Reader) io.Reader { return packedReader{r, p} }

type packedReader struct {
	io.Reader
	packed *packedBytes
}

func (r packedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	read := r.packed.read.Add(int64(n))
	if r.packed.progress != nil {
		r.packed.progress(read, r.packed.total)
	}
	return n, err
}

// digested is a reader that computes the digest of what is read.
type digested struct {
	io.Reader
	sum hash.Hash
}

func (d digested) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	d.sum.Write(p[:n])
	return n, err
}

func (d digested) hash() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(d.sum.Sum(nil))}
}

// newImage returns the image with a configuration. It has a layer of each size, which
// open opens by its number.
func newImage(config []byte, sizes []int64, open func(n int) (io.ReadCloser, error)) (*Image, error) {
	parsed, err := v1.ParseConfigFile(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("%w: its configuration: %w", rootfs.ErrRefused, err)
	}
	if os, arch := parsed.OS, parsed.Architecture; os != "" && os != "linux" || arch != "" && arch != runtime.GOARCH {
		return nil, fmt.Errorf("the image is for %s/%s, and this machine runs those for linux/%s", os, arch, runtime.GOARCH)
	}
	if len(parsed.RootFS.DiffIDs) != len(sizes) {
		return nil, fmt.Errorf("%w: it has %d layers, and its configuration lists %d", rootfs.ErrRefused, len(sizes), len(parsed.RootFS.DiffIDs))
	}
	id, _, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	i := &Image{ID: id.String()}
	for n, diff := range parsed.RootFS.DiffIDs {
		i.layers = append(i.layers, layer{diff: diff, size: sizes[n], open: func() (io.ReadCloser, error) { return open(n) }})
	}
	return i, nil
}
