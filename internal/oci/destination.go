package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

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
		write = func(w io.Writer) error { return writeArchive(ctx, w, d.names(reference), image) }
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

func (d Destination) push(ctx context.Context, image v1.Image, tag string) (string, error) {
	reference, err := name.NewTag(d.name, name.WithDefaultTag(tag))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDestination, err)
	}
	packed, err := compressed(image)
	if err != nil {
		return "", err
	}
	if err := remote.Write(reference, packed, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("pushing %s: %w%s", reference.Name(), err, loginHint(err, reference))
	}
	digest, err := packed.Digest()
	return reference.Name() + "@" + digest.String(), err
}
