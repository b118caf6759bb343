// Package images lists and removes the images that replicas can run in, of all runtimes.
package images

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ovs-offline/internal/logging"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process/store"
)

// Image is an image of a runtime.
type Image struct {
	Name    string    `json:"name"`
	Runtime string    `json:"runtime"`
	ID      string    `json:"id"`
	OVS     string    `json:"ovs"`              // version of Open vSwitch
	OVN     string    `json:"ovn"`              // version of OVN, "" without OVN
	Size    int64     `json:"size"`             // bytes
	Added   time.Time `json:"added"`            // when it was added or built
	Source  string    `json:"source,omitempty"` // of an image for local processes
	Root    string    `json:"root,omitempty"`   // path of its files, likewise
	UsedBy  []string  `json:"used_by"`          // workdirs of the replicas that run in it
	Remarks []string  `json:"remarks,omitempty"`
}

// List returns the images of a runtime, or of all for choose.Auto: those in the store
// for local processes, and those that build made in the engines. For choose.Auto, an
// engine that does not answer is left out. The error names what of the store cannot be
// read; the other images are returned with it.
func List(ctx context.Context, name string) ([]Image, error) {
	images := []Image{}
	var unreadable error
	if name == choose.Auto || name == choose.Process {
		images, unreadable = listStore(images)
	}
	for _, e := range engine.Names() {
		if name != choose.Auto && name != e {
			continue
		}
		built, err := listEngine(ctx, e)
		if err != nil && (name == e || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			logging.FromContext(ctx).Debug("list images", "reason", err)
		}
		images = append(images, built...)
	}
	return images, unreadable
}

// listStore appends the images in the store, also if some cannot be read.
func listStore(images []Image) ([]Image, error) {
	s, err := store.Open()
	if err != nil {
		return images, err
	}
	stored, unreadable := s.List()
	replicas, err := replica.List()
	if err != nil {
		return images, err
	}
	for _, i := range stored {
		listed := Image{Name: i.Name, Runtime: choose.Process, ID: i.ID, OVS: i.OVS, OVN: i.OVN, Size: i.Size, Added: i.Added, Source: i.Source, Root: i.Root, Remarks: i.Remarks, UsedBy: []string{}}
		for _, r := range replicas {
			if r.Root == i.Root {
				listed.UsedBy = append(listed.UsedBy, r.Workdir)
			}
		}
		images = append(images, listed)
	}
	return images, unreadable
}

func listEngine(ctx context.Context, name string) ([]Image, error) {
	e, err := engine.Connect(ctx, name)
	if err != nil {
		return nil, err
	}
	built, err := e.Images(ctx, engine.Repository)
	if err != nil {
		return nil, fmt.Errorf("looking for images in %s: %w", name, err)
	}
	containers, err := e.List(ctx, container.LabelWorkdir, "")
	if err != nil {
		return nil, fmt.Errorf("looking for containers in %s: %w", name, err)
	}
	var images []Image
	for _, i := range built {
		listed := Image{Name: i.Name, Runtime: name, ID: i.ID, OVS: i.Labels[container.LabelOVSVersion], OVN: i.Labels[container.LabelOVNVersion], Size: i.Size, Added: i.Created.UTC(), UsedBy: []string{}}
		for _, c := range containers {
			if c.ImageID == i.ID && c.Running {
				listed.UsedBy = append(listed.UsedBy, c.Labels[container.LabelWorkdir])
			}
		}
		slices.Sort(listed.UsedBy)
		listed.UsedBy = slices.Compact(listed.UsedBy)
		images = append(images, listed)
	}
	slices.SortFunc(images, func(a, b Image) int { return cmp.Compare(a.Name, b.Name) })
	return images, nil
}
