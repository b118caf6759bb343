package image

import (
	"context"
	"io"
	"slices"

	"ovs-offline/replica/runtime/engine"
)

// What the tests of package image_test need of the inside.

var (
	Programs = slices.Concat(ovsTools, ovnTools)
	Epoch    = epoch
)

const Detrace = detrace

func (h *Host) Files() int { return len(h.files) }

// OnHostNetwork is b for engines that can make no network for its steps.
func (b Build) OnHostNetwork() Build {
	b.network = "host"
	return b
}

// RunContainerfile is Run with steps of the test's own.
func (b Build) RunContainerfile(ctx context.Context, e *engine.Engine, containerfile string, args map[string]string, version string, progress io.Writer) (Made, error) {
	return b.run(ctx, e, engine.Build{Args: args, Containerfile: containerfile}, madeFromSource, version, progress)
}
