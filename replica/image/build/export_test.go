package build

import (
	"context"
	"io"
	"slices"

	"ovs-offline/replica/runtime/engine"
)

// Unexported parts for the tests in package image_test.

var (
	Programs = slices.Concat(ovsTools, ovnTools)
	Epoch    = epoch
)

const Detrace = detrace

func (c *Content) Files() int { return len(c.files.entries) }

// OnHostNetwork returns b with steps on the host's network, for engines that can't make
// a network.
func (b Build) OnHostNetwork() Build {
	b.network = "host"
	return b
}

// RunContainerfile works like Run, with another Containerfile, whose steps can copy the
// files of a folder.
func (b Build) RunContainerfile(ctx context.Context, service engine.Engine, containerfile, folder, version string,
	progress io.Writer) (Made, error) {
	return b.run(ctx, service, engine.Build{Folder: folder, Containerfile: containerfile}, madeFromSource, version,
		progress)
}
