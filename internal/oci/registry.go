package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"ovs-offline/internal/rootfs"
)

// openRegistry opens an image in a registry, with the credentials that docker login or
// podman login stored.
func openRegistry(ctx context.Context, text string) (*Image, error) {
	reference, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is neither a file nor a folder, nor the reference of an image: %w", ErrSource, text, err)
	}
	found, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	var image *Image
	if err == nil {
		image, err = pulled(found)
	}
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w%s", text, err, loginHint(err, reference))
	}
	image.Name = text
	return image, nil
}

// pulled returns the image in a registry. Its readers compare the digests.
func pulled(found v1.Image) (*Image, error) {
	manifest, err := found.Manifest()
	if err != nil {
		return nil, err
	}
	if manifest.Config.Size > maxDocument {
		return nil, fmt.Errorf("%w: its configuration has %d bytes", rootfs.ErrRefused, manifest.Config.Size)
	}
	config, err := found.RawConfigFile()
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, l := range manifest.Layers {
		sizes = append(sizes, l.Size)
	}
	return newImage(config, sizes, func(n int) (io.ReadCloser, error) {
		l, err := found.LayerByDigest(manifest.Layers[n].Digest)
		if err != nil {
			return nil, err
		}
		return l.Compressed()
	})
}

// loginHint returns the next step for an error of a registry that needs a login.
func loginHint(err error, reference name.Reference) string {
	refused, ok := errors.AsType[*transport.Error](err)
	if !ok || refused.StatusCode != http.StatusUnauthorized && refused.StatusCode != http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf("; log in with: podman login %[1]s (or docker login %[1]s)", reference.Context().RegistryStr())
}
