package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/outfile"
)

// ErrDestination is wrapped by errors about a destination that is not understood.
var ErrDestination = fault.Wrap(fault.Usage, errors.New("not a destination for an image"))

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
			return Destination{}, fmt.Errorf("%w: %q: the file name is missing", ErrDestination, text)
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
// only with replace.
func (d Destination) Write(ctx context.Context, image v1.Image, repository, tag string, replace bool) (string, error) {
	named := d.name
	if named == "" {
		named = repository + ":" + tag
	}
	reference, err := name.NewTag(named, name.WithDefaultTag(tag))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDestination, err)
	}
	write := func(to io.Writer) error { return tarball.Write(reference, image, to) }
	switch d.transport {
	case transportRegistry:
		return push(ctx, image, reference)
	case transportArchive:
		write = func(to io.Writer) error { return writeLayout(ctx, to, d.names(reference), image) }
	}
	_, err = outfile.Write(d.file, replace, write)
	return d.file, err
}

// names returns the annotations with the name of an image in a layout, as podman and
// skopeo read it, and for containerd with its registry. podman prefers the latter, and
// would take docker.io for the registry of an image that the user gave no name.
func (d Destination) names(reference name.Tag) map[string]string {
	text := reference.String()
	if tag := ":" + reference.TagStr(); !strings.HasSuffix(text, tag) {
		text += tag
	}
	names := map[string]string{annotationOf: text}
	if d.name != "" {
		names["io.containerd.image.name"] = reference.Name()
	}
	return names
}

func push(ctx context.Context, image v1.Image, reference name.Tag) (string, error) {
	packed, err := compressed(image)
	if err != nil {
		return "", err
	}
	if err := remote.Write(reference, packed, access(ctx)...); err != nil {
		return "", fmt.Errorf("pushing %s: %w%s", reference.Name(), err, loginHint(err, reference))
	}
	digest, err := packed.Digest()
	return reference.Name() + "@" + digest.String(), err
}

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
	for i, plain := range layers {
		layers[i], err = tarball.LayerFromOpener(plain.Uncompressed, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed))
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

// writeLayout writes an image as the tar of an OCI layout. Package layout writes folders only.
func writeLayout(ctx context.Context, to io.Writer, names map[string]string, image v1.Image) error {
	image, err := compressed(image)
	if err != nil {
		return err
	}
	blobs, err := blobsOf(image)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	index, err := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: config.Platform(), Annotations: names},
	}).RawManifest()
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	err = errors.Join(
		writeBlob(archive, layoutName, static.NewLayer([]byte(`{"imageLayoutVersion":"1.0.0"}`), "")),
		writeBlob(archive, indexName, static.NewLayer(index, types.OCIImageIndex)))
	for _, blob := range blobs {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		var digest v1.Hash
		if digest, err = blob.Digest(); err == nil {
			err = writeBlob(archive, blobPath(digest), blob)
		}
	}
	return errors.Join(err, archive.Close())
}

// blobsOf returns the manifest, the configuration and the layers of an image.
func blobsOf(image v1.Image) ([]v1.Layer, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := partial.ConfigLayer(image)
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	return append([]v1.Layer{static.NewLayer(manifest, types.OCIManifestSchema1), config}, layers...), err
}

// writeBlob writes a file of a layout.
func writeBlob(archive *tar.Writer, path string, blob v1.Layer) error {
	size, err := blob.Size()
	if err != nil {
		return err
	}
	content, err := blob.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	err = archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: size, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(archive, content) // package tar reports a wrong size
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
