// Package image makes the container image that a replica runs in: from the tools
// of this host, from distribution packages, or from source.
package image

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

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

// Versions are the versions of the programs in an image.
type Versions struct {
	OVS string `json:"ovs"`
	OVN string `json:"ovn"`
}

// labels returns the labels of an image, which holds ovs-offline if self is not nil.
func (v Versions) labels(made, version string, self *self) map[string]string {
	labels := map[string]string{
		container.LabelOVSVersion: v.OVS,
		container.LabelOVNVersion: v.OVN,
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

// name returns the name of an image with these versions in an engine.
func (v Versions) name(e *engine.Engine) string {
	return e.Repository() + ":" + v.Tag()
}

// Tag returns a name for an image with these versions.
func (v Versions) Tag() string {
	if v.OVN == "" {
		return "ovs-" + v.OVS
	}
	return "ovs-" + v.OVS + "-ovn-" + v.OVN
}

// ParseTag returns the versions in a name that Tag made; ok is false for other names.
func ParseTag(tag string) (v Versions, ok bool) {
	rest, ok := strings.CutPrefix(tag, "ovs-")
	if !ok {
		return Versions{}, false
	}
	v.OVS, v.OVN, _ = strings.Cut(rest, "-ovn-")
	return v, v.Tag() == tag && v.OVS != ""
}

// Made describes an image that was made in an engine.
type Made struct {
	Engine   string            `json:"engine"`
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Size     int64             `json:"size"` // bytes
	Versions Versions          `json:"versions"`
	Labels   map[string]string `json:"labels"`
	LeftOut  []string          `json:"left_out,omitempty"`
}

// Load loads the image into an engine, under its versions or the given name.
// version is the version of ovs-offline.
func (c *Content) Load(ctx context.Context, e *engine.Engine, name, version string) (Made, error) {
	name = cmp.Or(name, c.Versions.name(e))
	r, w := io.Pipe()
	defer r.Close() // ends the writer if the engine stops reading
	go func() { w.CloseWithError(c.Write(ctx, w, name, version)) }()
	if err := e.Load(ctx, r); err != nil {
		return Made{}, fmt.Errorf("loading the image into %s: %w", e.Name(), err)
	}
	made, err := inspect(ctx, e, name)
	made.LeftOut = c.LeftOut
	return made, err
}

func inspect(ctx context.Context, e *engine.Engine, name string) (Made, error) {
	found, err := e.InspectImage(ctx, name)
	if err != nil {
		return Made{}, fmt.Errorf("%s made image %s but does not find it: %w", e.Name(), name, err)
	}
	return Made{
		Engine: e.Name(), Name: name, ID: found.ID, Size: found.Size, Labels: found.Labels,
		Versions: Versions{OVS: found.Labels[container.LabelOVSVersion], OVN: found.Labels[container.LabelOVNVersion]},
	}, nil
}
