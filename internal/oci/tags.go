package oci

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// IsRepository reports whether a reference names a repository only, without a tag or a
// digest. The error wraps ErrSource for a text that is no reference.
func IsRepository(text string) (bool, error) {
	if _, err := name.NewDigest(text); err == nil {
		return false, nil
	}
	tag, err := name.NewTag(text, name.WithDefaultTag(""))
	if err != nil {
		return false, fmt.Errorf("%w: %q is not the reference of an image: %w", ErrSource, text, err)
	}
	return tag.TagStr() == "", nil
}

// Tags returns the tags of a repository, with the credentials that docker login or podman
// login stored.
func Tags(ctx context.Context, repository string) ([]string, error) {
	reference, err := name.NewRepository(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrSource, repository, err)
	}
	tags, err := remote.List(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w%s", repository, err, loginHint(err, reference.Tag("")))
	}
	return tags, nil
}

// Digest returns the reference of what a tag names now, with its digest in place of the tag.
func Digest(ctx context.Context, tag string) (string, error) {
	reference, err := name.NewTag(tag)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrSource, tag, err)
	}
	found, err := remote.Head(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w%s", tag, err, loginHint(err, reference))
	}
	return reference.Context().Digest(found.Digest.String()).String(), nil
}
