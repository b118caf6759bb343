package images

import (
	"context"
	"fmt"

	"ovs-offline/internal/oci"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process/store"
)

// PushOptions are the options of Push.
type PushOptions struct {
	Image   string // name or ID of an image for local processes; "" for this machine's tools
	Replace bool   // a file that exists
	Version string // of ovs-offline
}

// Pushed is an image that was pushed.
type Pushed struct {
	Name    string   `json:"name"` // with its digest in a registry, or the path of a file
	OVS     string   `json:"ovs"`
	OVN     string   `json:"ovn"`
	Size    int64    `json:"size"` // bytes, uncompressed
	LeftOut []string `json:"left_out,omitempty"`
}

// Push writes an image to a registry or to a file, with this program in it. It needs no
// container engine.
func Push(ctx context.Context, to oci.Destination, o PushOptions) (Pushed, error) {
	content, err := contentOf(ctx, o.Image)
	if err != nil {
		return Pushed{}, err
	}
	if err := content.AddSelf(ctx, o.Version); err != nil {
		return Pushed{}, err
	}
	made, err := content.Image(ctx, o.Version)
	if err != nil {
		return Pushed{}, err
	}
	name, err := to.Write(ctx, made, engine.Repository, content.Versions.Tag(), o.Replace)
	if err != nil {
		return Pushed{}, err
	}
	return Pushed{Name: name, OVS: content.Versions.OVS, OVN: content.Versions.OVN, Size: content.Size(), LeftOut: content.LeftOut}, nil
}

// contentOf returns the content of an image for local processes, or for "" that of an
// image of this machine's tools.
func contentOf(ctx context.Context, name string) (*image.Content, error) {
	if name == "" {
		return image.FromHost(ctx)
	}
	s, err := store.Open()
	if err != nil {
		return nil, err
	}
	found, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	return stored(ctx, found)
}

// stored returns the content of an image for local processes.
func stored(ctx context.Context, i store.Image) (*image.Content, error) {
	content, err := image.FromRoot(ctx, i.Root, image.Versions{OVS: i.OVS, OVN: i.OVN})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	return content, nil
}
