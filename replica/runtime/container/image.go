package container

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
)

// The labels that hold the versions in an image.
const (
	LabelOVSVersion = "ovs-offline.ovs-version"
	LabelOVNVersion = "ovs-offline.ovn-version"
)

const howToGetImage = "make one with \"ovs-offline image build\", or, without a registry, in seconds from this machine's own tools with \"ovs-offline image build --from-host\"; or pull one and name it with --image"

// Image is an image of an engine that daemons can run in.
type Image struct {
	Name     string
	Versions versions.Pair // unknown for an image that ovs-offline did not make
}

// Images returns the images of an engine: the named one, or for "" those that ovs-offline
// made, the newest first. The error wraps runtime.ErrNoImage if there is none.
func Images(ctx context.Context, e engine.Engine, name string) ([]Image, error) {
	if name != "" {
		return named(ctx, e, name)
	}
	images, err := e.Images(ctx, engine.Repository)
	if err != nil {
		return nil, fmt.Errorf("looking for images in %s: %w", e.Name(), err)
	}
	if len(images) == 0 {
		return nil, NoImage("", e)
	}
	slices.SortStableFunc(images, func(a, b engine.Image) int { return b.Created.Compare(a.Created) })
	var found []Image
	for _, image := range images {
		found = append(found, Image{image.Name, versionsOf(image)})
	}
	return found, nil
}

func named(ctx context.Context, e engine.Engine, name string) ([]Image, error) {
	image, err := e.InspectImage(ctx, name)
	if errors.Is(err, engine.ErrNoImage) {
		return nil, NoImage(" "+name, e)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s in %s: %w", name, e.Name(), err)
	}
	return []Image{{image.Name, versionsOf(image)}}, nil
}

func versionsOf(image engine.Image) versions.Pair {
	return versions.Pair{OVS: image.Labels[LabelOVSVersion], OVN: image.Labels[LabelOVNVersion]}
}

// NoImage returns the error for an engine that lacks an image; which is a name, or begins
// with "with". It wraps runtime.ErrNoImage and names the next step.
func NoImage(which string, engine engine.Engine) error {
	return fmt.Errorf("%w%s in %s: %s", runtime.ErrNoImage, which, engine.Name(), howToGetImage)
}
