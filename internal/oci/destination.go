package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ovs-offline/internal/outfile"
)

// ErrDestination is wrapped by errors about a destination that is not understood.
var ErrDestination = errors.New("not a destination for an image")

// Destination is a place to which an image can be written.
type Destination struct {
	transport string
	file      string // "" for a registry
	name      string // the image's; "" for the default
}

// ParseDestination returns the destination of a text, which is one of:
//
//	REGISTRY/NAME[:TAG], docker://REFERENCE   an image in a registry
//	docker-archive:FILE[:REFERENCE]           a file as docker save writes it
//	oci-archive:FILE[:NAME]                   a tar of an OCI layout
func ParseDestination(text string) (Destination, error) {
	transport, rest, _ := strings.Cut(text, ":")
	if transport == transportDocker || transport == transportArchive {
		file, image := splitName(rest)
		if file == "" {
			return Destination{}, fmt.Errorf("%w: %q names no file", ErrDestination, text)
		}
		return Destination{transport: transport, file: file, name: image}, nil
	}
	reference, explicit := strings.CutPrefix(text, transportRegistry+"://")
	if !explicit && isPath(text) {
		return Destination{}, fmt.Errorf("%w: %q: to write a file, put %s: or %s: in front", ErrDestination, text, transportArchive, transportDocker)
	}
	if _, err := name.NewTag(reference); err != nil {
		return Destination{}, fmt.Errorf("%w: %w", ErrDestination, err)
	}
	return Destination{transport: transportRegistry, name: reference}, nil
}

// Write writes an image, and returns the name that it has there: a reference with its
// digest in a registry, or the file. repository and tag are the name of an image that the
// destination gives none. A file appears once it is complete; one that exists is replaced
// only with replace. Credentials for a registry are those of docker login or podman login.
func (d Destination) Write(ctx context.Context, image v1.Image, repository, tag string, replace bool) (string, error) {
	if d.transport == transportRegistry {
		return d.push(ctx, image, tag)
	}
	named := d.name
	if named == "" {
		named = repository + ":" + tag
	}
	reference, err := name.NewTag(named, name.WithDefaultTag(tag))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDestination, err)
	}
	write := func(w io.Writer) error { return tarball.Write(reference, image, w) }
	if d.transport == transportArchive {
		write = func(w io.Writer) error { return writeLayout(ctx, w, reference, image) }
	}
	_, err = outfile.Write(d.file, replace, write)
	return d.file, err
}

func (d Destination) push(ctx context.Context, image v1.Image, tag string) (string, error) {
	reference, err := name.NewTag(d.name, name.WithDefaultTag(tag))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDestination, err)
	}
	packed, err := pack(image)
	if err != nil {
		return "", err
	}
	if err := remote.Write(reference, packed, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("pushing %s: %w%s", reference, err, loginHint(err, reference))
	}
	digest, err := packed.Digest()
	return reference.String() + "@" + digest.String(), err
}

// pack returns the same image, of the OCI's media types, with compressed layers.
func pack(image v1.Image) (v1.Image, error) {
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

// writeLayout writes an image as the tar of an OCI layout.
func writeLayout(ctx context.Context, w io.Writer, reference name.Tag, image v1.Image) error {
	image, err := pack(image)
	if err != nil {
		return err
	}
	index, err := indexOf(reference, image)
	if err != nil {
		return err
	}
	blobs, err := blobsOf(image)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, b := range slices.Concat([]blob{content(layoutName, []byte(`{"imageLayoutVersion":"1.0.0"}`)), content(indexName, index)}, blobs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.write(t); err != nil {
			return fmt.Errorf("writing %s: %w", b.name, err)
		}
	}
	return t.Close()
}

// indexOf returns the index of a layout with one image, named as podman, skopeo and
// containerd read it.
func indexOf(reference name.Tag, image v1.Image) ([]byte, error) {
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
			Annotations: map[string]string{annotationOf: reference.String(), "io.containerd.image.name": reference.Name()},
		}},
	})
}

// blob is a file of a layout.
type blob struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

func content(path string, text []byte) blob {
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
	blobs := []blob{content(blobPath(digest), manifest), content(blobPath(id), config)}
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
