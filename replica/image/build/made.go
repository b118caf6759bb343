// Package build makes the images that replicas run in: from the tools of this host, from
// distribution packages, or from source. It puts ovs-offline into them, pushes them, and
// saves the image of a replica with the replica's data.
package build

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
)

// labelMade is the label that records how an image was made.
const labelMade = "ovs-offline.made"

// Values of labelMade.
const (
	madeFromHost     = "from-host"
	madeFromPackages = "packages"
	madeFromSource   = "source"
	madeFromImage    = "image"
)

// labels returns the labels of an image, which holds ovs-offline if self is not nil.
func labels(pair versions.Pair, made, version string, self *self) map[string]string {
	labels := map[string]string{
		container.LabelOVSVersion: pair.OVS,
		container.LabelOVNVersion: pair.OVN,
		labelMade:                 made,
	}
	if version != "" {
		labels[container.LabelVersion] = version
	}
	if self != nil {
		labels[labelSelf] = self.version
	}
	return labels
}

// labelled returns the versions in the labels of an image.
func labelled(labels map[string]string) versions.Pair {
	return versions.Pair{OVS: labels[container.LabelOVSVersion], OVN: labels[container.LabelOVNVersion]}
}

// nameIn returns the name of an image with these versions in an engine.
func nameIn(service engine.Engine, pair versions.Pair) string {
	return service.Repository() + ":" + image.Tag(pair)
}

// Made describes an image that was made in an engine.
type Made struct {
	Engine   string            `json:"engine"`
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Size     int64             `json:"size"` // bytes
	Versions versions.Pair     `json:"versions"`
	Labels   map[string]string `json:"labels"`
	LeftOut  []string          `json:"left_out,omitempty"`
}

// Load loads the image into an engine, under its versions or the given name.
// version is the version of ovs-offline.
func (c *Content) Load(ctx context.Context, service engine.Engine, name, version string) (Made, error) {
	name = cmp.Or(name, nameIn(service, c.Versions))
	archive, to := io.Pipe()
	defer archive.Close() // ends the writer if the engine stops reading
	go func() { to.CloseWithError(c.Write(ctx, to, name, version)) }()
	if err := service.Load(ctx, archive); err != nil {
		return Made{}, fmt.Errorf("loading the image into %s: %w", service.Name(), err)
	}
	made, err := inspect(ctx, service, name)
	made.LeftOut = c.LeftOut
	return made, err
}

func inspect(ctx context.Context, service engine.Engine, name string) (Made, error) {
	found, err := service.InspectImage(ctx, name)
	if err != nil {
		return Made{}, fmt.Errorf("%s made image %s but does not find it: %w", service.Name(), name, err)
	}
	return Made{Engine: service.Name(), Name: name, ID: found.ID, Size: found.Size, Labels: found.Labels, Versions: labelled(found.Labels)}, nil
}
