package container

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
)

// The labels that hold the versions in an image.
const (
	LabelOVSVersion = "ovs-offline.ovs-version"
	LabelOVNVersion = "ovs-offline.ovn-version"
)

const howToGetImage = "make one with \"ovs-offline build\", or, without a registry, in seconds from this machine's own tools with \"ovs-offline build --from-host\"; or pull one and name it with --image"

// Wanted selects an image.
type Wanted struct {
	Image       string // by its name; the other fields are ignored then
	Version     string // the version of Open vSwitch in the image, or the beginning of it: "3.1"
	RecordedOVS string // the recorded version of Open vSwitch
}

// Choose returns the name of an image: the named one, or else among the images with the
// wanted version the one nearest to the recorded version, which is one with an equal
// version, with the same minor version, or with the newest version. The error wraps
// runtime.ErrNoImage.
func Choose(ctx context.Context, e *engine.Engine, w Wanted) (string, error) {
	if w.Image != "" {
		found, err := e.FindImage(ctx, w.Image)
		if err == nil && found == "" {
			err = fmt.Errorf("%w %s in %s: %s", runtime.ErrNoImage, w.Image, e.Name(), howToGetImage)
		}
		return found, err
	}
	images, err := e.Images(ctx, engine.Repository)
	if err != nil {
		return "", fmt.Errorf("looking for images in %s: %w", e.Name(), err)
	}
	with := ""
	if w.Version != "" {
		with = " with Open vSwitch " + w.Version
		images = slices.DeleteFunc(images, func(i engine.Image) bool {
			return !strings.HasPrefix(i.Labels[LabelOVSVersion]+".", w.Version+".")
		})
	}
	if len(images) == 0 {
		return "", fmt.Errorf("%w%s in %s: %s", runtime.ErrNoImage, with, e.Name(), howToGetImage)
	}
	best := slices.MaxFunc(images, func(a, b engine.Image) int {
		return cmp.Or(nearness(a, w.RecordedOVS)-nearness(b, w.RecordedOVS), a.Created.Compare(b.Created))
	})
	return best.Name, nil
}

// nearness returns a greater number for an image nearer to the recorded version.
func nearness(i engine.Image, recorded string) int {
	version := i.Labels[LabelOVSVersion]
	switch {
	case recorded == "" || version == "":
		return 0
	case version == recorded:
		return 2
	case versions.Minor(version) == versions.Minor(recorded):
		return 1
	}
	return 0
}
