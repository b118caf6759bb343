package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/phrase"
)

// Source is an image that is open for reading.
type Source struct {
	ID     string // digest of the configuration; "" for a folder
	Name   string // the name that the source has for it, "" for none
	Folder string // path of the folder that holds the root file system; "" for an image of layers

	layers []layer
	files  io.Closer // nil if nothing is open
}

// layer is a layer of an image.
type layer struct {
	diff v1.Hash // digest of the unpacked layer
	size int64   // packed, in bytes
	open func() (io.ReadCloser, error)
}

// newSource returns the source with a configuration and layers, whose digests are in the
// configuration.
func newSource(config []byte, layers []layer) (*Source, error) {
	parsed, err := v1.ParseConfigFile(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("%w: its configuration: %w", ErrRefused, err)
	}
	if os, arch := parsed.OS, parsed.Architecture; os != "" && os != "linux" || arch != "" && arch != runtime.GOARCH {
		return nil, fmt.Errorf("the image is for %s/%s, and this machine runs images for linux/%s", os, arch, runtime.GOARCH)
	}
	if len(parsed.RootFS.DiffIDs) != len(layers) {
		return nil, fmt.Errorf("%w: it has %d layers, and its configuration lists %d", ErrRefused, len(layers), len(parsed.RootFS.DiffIDs))
	}
	for i, diff := range parsed.RootFS.DiffIDs {
		layers[i].diff = diff
	}
	id, _, err := v1.SHA256(bytes.NewReader(config))
	return &Source{ID: id.String(), layers: layers}, err
}

// openImage returns the source that is an image of go-containerregistry.
func openImage(image v1.Image) (*Source, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if manifest.Config.Size > maxDocument {
		return nil, fmt.Errorf("%w: its configuration has %d bytes", ErrRefused, manifest.Config.Size)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	found, err := image.Layers()
	if err != nil {
		return nil, err
	}
	var layers []layer
	for i, packed := range found {
		layers = append(layers, layer{size: manifest.Layers[i].Size, open: packed.Compressed})
	}
	return newSource(config, layers)
}

// Close closes the source.
func (s *Source) Close() error {
	if s.files == nil {
		return nil
	}
	return s.files.Close()
}

// Unpack writes the root file system into the existing folder dir, and returns its ID, its
// size, and a remark about files of a folder that the caller may not read. The digest of each
// layer is checked, but only at its end: after an error, dir holds a part of the image.
func (s *Source) Unpack(ctx context.Context, dir string, options Options) (Image, error) {
	packed := &packedBytes{progress: options.Progress}
	for _, one := range s.layers {
		packed.total += one.size
	}
	read := packed.read.Load
	if s.Folder != "" {
		read = nil
	}
	to, err := newWriter(dir, archive.New(options.Limits, read))
	if err != nil {
		return Image{}, err
	}
	defer to.close()
	if s.Folder != "" {
		digest, unreadable, err := to.copyFolder(ctx, s.Folder, options.Progress)
		if err != nil {
			return Image{}, fmt.Errorf("copying %s: %w", s.Folder, err)
		}
		unpacked := Image{ID: "sha256:" + digest, Size: to.size}
		if len(unreadable) > 0 {
			unpacked.Remarks = []string{"left out, because you may not read it: " + phrase.FirstNames(unreadable)}
		}
		return unpacked, nil
	}
	for i, one := range s.layers {
		if err := one.unpack(ctx, to, packed); err != nil {
			return Image{}, fmt.Errorf("layer %d of %d: %w", i+1, len(s.layers), err)
		}
	}
	return Image{ID: s.ID, Size: to.size}, nil
}

// unpack writes the files of the layer, and checks its digest.
func (l layer) unpack(ctx context.Context, to *writer, packed *packedBytes) error {
	in, err := l.open()
	if err != nil {
		return err
	}
	defer in.Close()
	raw := interrupt.Reader(ctx, packed.counted(in))
	content, _, err := archive.Decompress(ctx, raw)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = to.writeLayer(ctx, io.TeeReader(content, sum))
	content.Close() // nothing else reads raw from here on
	if err != nil {
		return err
	}
	if got := (v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}); got != l.diff {
		return fmt.Errorf("%w: the digest of the layer is %v, but the image's configuration has %v: copy or pull it again", ErrRefused, got, l.diff)
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

func (p *packedBytes) counted(from io.Reader) io.Reader { return packedReader{from, p} }

type packedReader struct {
	io.Reader
	packed *packedBytes
}

func (r packedReader) Read(data []byte) (int, error) {
	n, err := r.Reader.Read(data)
	read := r.packed.read.Add(int64(n))
	if r.packed.progress != nil {
		r.packed.progress(read, r.packed.total)
	}
	return n, err
}
