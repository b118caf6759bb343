// Package image makes the container image that a replica runs in: from the
// tools of this host, from distribution packages, or from source. It knows
// engines and no replicas.
package image

import (
	"context"
	"fmt"
	"io"

	"ovs-offline/replica/runtime/container"
)

// labelMade says how an image was made, beside the labels that tell the versions.
const labelMade = "ovs-offline.made"

// Values of labelMade.
const (
	madeFromHost     = "from-host"
	madeFromPackages = "packages"
	madeFromSource   = "source"
)

// Versions are those of what is inside an image.
type Versions struct {
	OVS string `json:"ovs"`
	OVN string `json:"ovn"`
}

func (v Versions) labels(made, version string) map[string]string {
	return map[string]string{
		container.LabelOVSVersion: v.OVS,
		container.LabelOVNVersion: v.OVN,
		labelMade:                 made,
		container.LabelVersion:    version,
	}
}

// name is what an image with these versions is called in an engine.
func (v Versions) name(e Engine) string {
	return e.Repository() + ":ovs-" + v.OVS + "-ovn-" + v.OVN
}

// Engine is a container engine, reduced to what making an image takes.
type Engine interface {
	// Name is the spelling the command line uses: "podman", "docker".
	Name() string
	// Repository is the name without a tag that images get.
	Repository() string
	// Load takes an archive as `docker save` writes it.
	Load(ctx context.Context, archive io.Reader) error
	// Build makes an image from a Containerfile. What it prints goes to progress.
	Build(ctx context.Context, b containerBuild, progress io.Writer) error
	// Inspect tells of an image.
	Inspect(ctx context.Context, name string) (Made, error)
	// ReadFile reads a small file in an image, without running anything of it.
	ReadFile(ctx context.Context, name, path string) ([]byte, error)
	// Untag takes a name away from an image, and the image with its last name.
	Untag(ctx context.Context, name string) error
}

// Made tells of an image that an engine has.
type Made struct {
	Engine   string            `json:"engine"`
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Size     int64             `json:"size"` // bytes
	Versions Versions          `json:"versions"`
	Labels   map[string]string `json:"labels"`
	LeftOut  []string          `json:"left_out,omitempty"`
}

// Load puts an image of this host into an engine, under its versions or the
// name given. version is that of ovs-offline.
func (h *Host) Load(ctx context.Context, e Engine, name, version string) (Made, error) {
	if name == "" {
		name = h.Versions.name(e)
	}
	r, w := io.Pipe()
	defer r.Close() // an engine that stops reading ends the writer
	go func() { w.CloseWithError(h.Write(ctx, w, name, version)) }()
	if err := e.Load(ctx, r); err != nil {
		return Made{}, fmt.Errorf("loading the image into %s: %w", e.Name(), err)
	}
	made, err := inspect(ctx, e, name)
	made.LeftOut = h.LeftOut
	return made, err
}

func inspect(ctx context.Context, e Engine, name string) (Made, error) {
	made, err := e.Inspect(ctx, name)
	if err != nil {
		return Made{}, fmt.Errorf("%s made image %s and does not find it: %w", e.Name(), name, err)
	}
	made.Engine, made.Name = e.Name(), name
	made.Versions = Versions{OVS: made.Labels[container.LabelOVSVersion], OVN: made.Labels[container.LabelOVNVersion]}
	return made, nil
}
