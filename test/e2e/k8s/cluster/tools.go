package cluster

import (
	"context"
	"errors"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	saved "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	replica "ovs-offline/replica/image"
)

// Repository is the usual name of the image with the tools.
const Repository = "localhost/ovs-offline"

// Tools is an image with the tools of OVS and OVN of this machine, and with ovs-offline.
type Tools struct {
	Name string // with a tag
	File string // in the format of `docker save`
}

// WriteTools writes the image to a file; program is the file of ovs-offline, and
// repository the image's name without its tag.
func WriteTools(ctx context.Context, path, repository, program string) (Tools, error) {
	content, err := replica.FromHost(ctx)
	if err != nil {
		return Tools{}, err
	}
	t := Tools{Name: repository + ":" + content.Versions.Tag(), File: path}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return Tools{}, err
	}
	if err := errors.Join(content.Write(ctx, file, t.Name, "test"), file.Close()); err != nil {
		return Tools{}, err
	}
	return t, t.add(program)
}

// add adds a layer with ovs-offline.
func (t Tools) add(program string) error {
	tag, err := name.NewTag(t.Name)
	if err != nil {
		return err
	}
	host, err := saved.ImageFromPath(t.File, &tag)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var content tarball
	content.file("usr/bin/ovs-offline", text, 0o755)
	layer, err := content.bytes()
	if err != nil {
		return err
	}
	whole, err := mutate.AppendLayers(host, static.NewLayer(layer, types.DockerUncompressedLayer))
	if err != nil {
		return err
	}
	// The image reads its first layer from the file while the new one is written.
	if err := saved.WriteToFile(t.File+".new", tag, whole); err != nil {
		return err
	}
	return os.Rename(t.File+".new", t.File)
}
