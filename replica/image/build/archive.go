package build

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
func (c *Content) Write(ctx context.Context, to io.Writer, reference, version string) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("the image's name %q: %w", reference, err)
	}
	image, err := c.Image(ctx, version)
	if err != nil {
		return err
	}
	return tarball.Write(tag, image, to)
}

// Image returns the image. version is the version of ovs-offline. Its layers are
// uncompressed, and made from the files each time they are read, until ctx ends.
func (c *Content) Image(ctx context.Context, version string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, packed := range c.layers() {
		made, err := newLayer(ctx, packed)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{
			Layer: made, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "ovs-offline image build"},
		})
	}
	bare, err := mutate.Append(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := bare.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: epoch}
	config.Config = v1.Config{
		Env:    []string{"PATH=" + strings.Join(c.path, ":")},
		Labels: labels(c.Versions, c.made, version, c.self),
	}
	if c.self != nil {
		config.Config.Env = append(config.Config.Env, "HOME="+home)
	}
	return mutate.ConfigFile(bare, config)
}

// layer is a layer of an image: an uncompressed tar, which is made from the
// files each time it is read. An engine would decompress it at once.
type layer struct {
	ctx    context.Context // the methods of v1.Layer take none
	files  files
	digest v1.Hash
	size   int64
}

func newLayer(ctx context.Context, packed files) (*layer, error) {
	made := &layer{ctx: ctx, files: packed}
	content, err := made.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	made.digest, made.size, err = v1.SHA256(content)
	return made, err
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	content, to := io.Pipe()
	go func() { to.CloseWithError(l.files.writeTar(l.ctx, to)) }()
	return content, nil
}
