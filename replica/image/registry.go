package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// openRegistry opens an image in a registry. Its readers compare the digests.
func openRegistry(ctx context.Context, text string) (*Source, error) {
	reference, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is neither a file nor a folder, nor the reference of an image: %w", ErrSource, text, err)
	}
	found, err := remote.Image(reference, append(access(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))...)
	var source *Source
	if err == nil {
		source, err = openImage(found)
	}
	if err != nil {
		hint := loginHint(err, reference)
		if hint == "" && ctx.Err() == nil {
			hint = "; a file of podman save or docker save and a root directory can be added as well"
		}
		return nil, fmt.Errorf("pulling %s: %w%s", text, err, hint)
	}
	source.Name = text
	return source, nil
}

// access returns the options of each request to a registry: the credentials that docker
// login or podman login stored.
func access(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// loginHint returns the next step for an error of a registry that needs a login.
func loginHint(err error, reference name.Reference) string {
	refused, ok := errors.AsType[*transport.Error](err)
	if !ok || refused.StatusCode != http.StatusUnauthorized && refused.StatusCode != http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf("; log in with: podman login %[1]s (or docker login %[1]s)", reference.Context().RegistryStr())
}

// IsRepository reports whether a reference names a repository only, without a tag or a
// digest. The error wraps ErrSource for a text that is not a reference.
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

// Tags returns the tags of a repository in a registry.
func Tags(ctx context.Context, repository string) ([]string, error) {
	reference, err := name.NewRepository(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrSource, repository, err)
	}
	tags, err := remote.List(reference, access(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w%s", repository, err, loginHint(err, reference.Tag("")))
	}
	return tags, nil
}

// Digest returns the reference of the image that a tag names now, with its digest in place
// of the tag.
func Digest(ctx context.Context, tag string) (string, error) {
	reference, err := name.NewTag(tag)
	if err != nil {
		return "", fmt.Errorf("%w: %q: %w", ErrSource, tag, err)
	}
	found, err := remote.Head(reference, access(ctx)...)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w%s", tag, err, loginHint(err, reference))
	}
	return reference.Context().Digest(found.Digest.String()).String(), nil
}
