package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// compressed returns the same image, of the OCI's media types, with compressed layers.
func compressed(image v1.Image) (v1.Image, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	for n, l := range layers {
		layers[n], err = tarball.LayerFromOpener(l.Uncompressed, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed))
		if err != nil {
			return nil, err
		}
	}
	packed := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if packed, err = mutate.AppendLayers(packed, layers...); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(packed, config)
}

// writeArchive writes an image as the tar of an OCI layout.
func writeArchive(ctx context.Context, w io.Writer, names map[string]string, image v1.Image) error {
	image, err := compressed(image)
	if err != nil {
		return err
	}
	index, err := indexOf(names, image)
	if err != nil {
		return err
	}
	blobs, err := blobsOf(image)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, b := range slices.Concat([]blob{textBlob(layoutName, []byte(`{"imageLayoutVersion":"1.0.0"}`)), textBlob(indexName, index)}, blobs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.write(t); err != nil {
			return fmt.Errorf("writing %s: %w", b.name, err)
		}
	}
	return t.Close()
}

// indexOf returns the index of a layout with one image.
func indexOf(names map[string]string, image v1.Image) ([]byte, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	return json.Marshal(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest, Platform: config.Platform(),
			Annotations: names,
		}},
	})
}

// blob is a file of a layout.
type blob struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

func textBlob(path string, text []byte) blob {
	return blob{path, int64(len(text)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
}

// blobsOf returns the manifest, the configuration and the layers of an image, by their
// digests.
func blobsOf(image v1.Image) ([]blob, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	id, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	blobs := []blob{textBlob(blobPath(digest), manifest), textBlob(blobPath(id), config)}
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return nil, err
		}
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, blob{blobPath(digest), size, l.Compressed})
	}
	return blobs, nil
}

func (b blob) write(t *tar.Writer) error {
	content, err := b.open()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := t.WriteHeader(&tar.Header{Name: b.name, Mode: 0o644, Size: b.size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(t, content) // tar reports a wrong size
	return err
}
