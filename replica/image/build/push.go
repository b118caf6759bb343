package build

import (
	"context"
	"fmt"

	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/engine"
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
func Push(ctx context.Context, to image.Destination, options PushOptions) (Pushed, error) {
	content, err := pushedContent(ctx, options.Image)
	if err != nil {
		return Pushed{}, err
	}
	if err := content.AddSelf(ctx, options.Version); err != nil {
		return Pushed{}, err
	}
	made, err := content.Image(ctx, options.Version)
	if err != nil {
		return Pushed{}, err
	}
	name, err := to.Write(ctx, made, engine.Repository, image.Tag(content.Versions), options.Replace)
	if err != nil {
		return Pushed{}, err
	}
	return Pushed{Name: name, OVS: content.Versions.OVS, OVN: content.Versions.OVN, Size: content.Size(), LeftOut: content.LeftOut}, nil
}

// pushedContent returns the content of an image for local processes; for "", of an image of
// this machine's tools.
func pushedContent(ctx context.Context, name string) (*Content, error) {
	if name == "" {
		return FromHost(ctx)
	}
	store, err := image.OpenStore()
	if err != nil {
		return nil, err
	}
	found, err := store.Find(name)
	if err != nil {
		return nil, err
	}
	return contentOf(ctx, found)
}

// contentOf returns the content of an image for local processes.
func contentOf(ctx context.Context, stored image.Image) (*Content, error) {
	content, err := FromRoot(ctx, stored.Root, stored.Versions())
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", stored.Name, err)
	}
	return content, nil
}
