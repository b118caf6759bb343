package image

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Write writes the image under a name in the format of `docker save`, uncompressed,
// for `podman load` and `docker load`. It needs no temporary file, and the same
// files give the same bytes. version is the version of ovs-offline.
func (c *Content) Write(ctx context.Context, w io.Writer, reference, version string) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("the image's name %q: %w", reference, err)
	}
	img, err := c.Image(ctx, version)
	if err != nil {
		return err
	}
	return tarball.Write(tag, img, w)
}

// Image returns the image. version is the version of ovs-offline. Its layers are
// uncompressed, and made from the files each time they are read, until ctx ends.
func (c *Content) Image(ctx context.Context, version string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, files := range c.layers() {
		l, err := newLayer(ctx, files)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{
			Layer: l, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "ovs-offline image build"},
		})
	}
	img, err := mutate.Append(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: epoch}
	config.Config = v1.Config{
		Env:    []string{"PATH=" + strings.Join(c.path, ":")},
		Labels: c.Versions.labels(c.made, version, c.self),
	}
	if c.self != nil {
		config.Config.Env = append(config.Config.Env, "HOME="+home)
	}
	return mutate.ConfigFile(img, config)
}

// layer is a layer of an image: an uncompressed tar, which is made from the
// files each time it is read. An engine would decompress it at once.
type layer struct {
	ctx    context.Context // the methods of v1.Layer take none
	files  rootfs
	digest v1.Hash
	size   int64
}

func newLayer(ctx context.Context, files rootfs) (*layer, error) {
	l := &layer{ctx: ctx, files: files}
	content, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	l.digest, l.size, err = v1.SHA256(content)
	return l, err
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.files.writeTar(l.ctx, w)) }()
	return r, nil
}
