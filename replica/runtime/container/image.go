package container

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/replica/runtime"
)

// Repository is where images made by `ovs-offline build` stand, and the labels
// say what is inside.
const (
	Repository      = "ovs-offline"
	LabelOVSVersion = "ovs-offline.ovs-version"
	LabelOVNVersion = "ovs-offline.ovn-version"
)

const howToGetImage = "make one with \"ovs-offline build\", or, without a registry, in seconds from this machine's own tools with \"ovs-offline build --from-host\"; or pull one and name it with --image"

// Wanted says which image a start wants.
type Wanted struct {
	Image       string // by its name; the rest does not matter then
	Version     string // of Open vSwitch inside, or the beginning of it: "3.1"
	RecordedOVS string // the recorded version, for the best match
}

// Choose finds the image to start: the one named, else one with the wanted
// version, else the one nearest to the recorded version: equal, of the same
// minor version, or the newest. The error wraps runtime.ErrNoImage.
func Choose(ctx context.Context, e Engine, w Wanted) (string, error) {
	if w.Image != "" {
		found, err := e.FindImage(ctx, w.Image)
		if err == nil && found == "" {
			err = fmt.Errorf("%w %s in %s: %s", runtime.ErrNoImage, w.Image, e.Name(), howToGetImage)
		}
		return found, err
	}
	images, err := e.Images(ctx, Repository)
	if err != nil {
		return "", fmt.Errorf("looking for images in %s: %w", e.Name(), err)
	}
	if w.Version != "" {
		images = slices.DeleteFunc(images, func(i Image) bool { return !begins(i.Labels[LabelOVSVersion], w.Version) })
	}
	if len(images) == 0 {
		with := ""
		if w.Version != "" {
			with = " with Open vSwitch " + w.Version
		}
		return "", fmt.Errorf("%w%s in %s: %s", runtime.ErrNoImage, with, e.Name(), howToGetImage)
	}
	best := slices.MaxFunc(images, func(a, b Image) int {
		if d := nearness(a, w.RecordedOVS) - nearness(b, w.RecordedOVS); d != 0 {
			return d
		}
		return a.Created.Compare(b.Created)
	})
	return best.Name, nil
}

func nearness(i Image, recorded string) int {
	version := i.Labels[LabelOVSVersion]
	switch {
	case recorded == "" || version == "":
		return 0
	case version == recorded:
		return 2
	case minor(version) == minor(recorded):
		return 1
	}
	return 0
}

func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// begins tells whether a version is the wanted one, or one of it.
func begins(version, wanted string) bool {
	return version == wanted || strings.HasPrefix(version, wanted+".")
}
