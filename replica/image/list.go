package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
)

// Listed is an image of a runtime. Of an image for local processes, it has the source and
// the path of the root file system.
type Listed struct {
	Image
	Runtime string   `json:"runtime"`
	UsedBy  []string `json:"used_by"` // workdirs of the replicas that run in it
}

// List returns the images of a runtime, or of all runtimes for runtime.Auto. Local processes
// have the images in the store, and engines the images that package build made. For
// runtime.Auto, an engine that does not answer is left out. roots has the workdirs of the
// replicas that run in each root file system. The error names the images of the store that
// cannot be read; the other images are returned with it.
func List(ctx context.Context, name string, roots map[string][]string) ([]Listed, error) {
	images := []Listed{}
	var unreadable error
	if name == runtime.Auto || name == process.Name {
		images, unreadable = listStore(roots)
	}
	for _, other := range engine.Names() {
		if name != runtime.Auto && name != other {
			continue
		}
		built, err := listEngine(ctx, other)
		if err != nil && (name == other || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			logging.FromContext(ctx).Debug("list images", "reason", err)
		}
		images = append(images, built...)
	}
	return images, unreadable
}

// listStore returns the images in the store, also if some cannot be read.
func listStore(roots map[string][]string) ([]Listed, error) {
	images := []Listed{}
	store, err := OpenStore()
	if err != nil {
		return images, err
	}
	stored, unreadable := store.List()
	for _, found := range stored {
		images = append(images, Listed{Image: found, Runtime: process.Name, UsedBy: append([]string{}, roots[found.Root]...)})
	}
	return images, unreadable
}

func listEngine(ctx context.Context, name string) ([]Listed, error) {
	service, err := engine.Connect(ctx, name)
	if err != nil {
		return nil, err
	}
	built, err := service.Images(ctx, engine.Repository)
	if err != nil {
		return nil, fmt.Errorf("looking for images in %s: %w", name, err)
	}
	containers, err := service.List(ctx, container.LabelWorkdir, "")
	if err != nil {
		return nil, fmt.Errorf("looking for containers in %s: %w", name, err)
	}
	var images []Listed
	for _, made := range built {
		listed := Listed{Runtime: name, UsedBy: []string{}, Image: Image{
			Name: made.Name, ID: made.ID, Size: made.Size, Added: made.Created.UTC(),
			OVS: made.Labels[container.LabelOVSVersion], OVN: made.Labels[container.LabelOVNVersion],
		}}
		for _, running := range containers {
			if running.ImageID == made.ID && running.Running {
				listed.UsedBy = append(listed.UsedBy, running.Labels[container.LabelWorkdir])
			}
		}
		slices.Sort(listed.UsedBy)
		listed.UsedBy = slices.Compact(listed.UsedBy)
		images = append(images, listed)
	}
	slices.SortFunc(images, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	return images, nil
}

// Tag returns a name for an image with these versions.
func Tag(pair versions.Pair) string {
	if pair.OVN == "" {
		return "ovs-" + pair.OVS
	}
	return "ovs-" + pair.OVS + "-ovn-" + pair.OVN
}

// ParseTag returns the versions in a name that Tag made; ok is false for other names.
func ParseTag(tag string) (pair versions.Pair, ok bool) {
	rest, ok := strings.CutPrefix(tag, "ovs-")
	if !ok {
		return versions.Pair{}, false
	}
	pair.OVS, pair.OVN, _ = strings.Cut(rest, "-ovn-")
	return pair, Tag(pair) == tag && pair.OVS != ""
}
