package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/bundle"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process/store"
)

// Used returns the image in which the running replica of a workdir runs. Of a replica
// that runs with this host's tools, it is an image of these.
func Used(ctx context.Context, wd *workdir.Dir, state replica.State) (*bundle.ImageSource, error) {
	switch {
	case state.Pod != nil:
		return nil, fmt.Errorf("the replica in %s runs in a cluster, and its image is in a registry: save without --with-image, and start it elsewhere with start --image", wd.Path())
	case state.Runtime != choose.Process:
		return usedInEngine(ctx, wd, state.Runtime)
	case state.Root == "":
		host, err := image.FromHost(ctx)
		if err != nil {
			return nil, err
		}
		return ofContent(host, host.Versions.Tag()), nil
	}
	return usedInStore(ctx, state.Root)
}

func usedInStore(ctx context.Context, root string) (*bundle.ImageSource, error) {
	s, err := store.Open()
	if err != nil {
		return nil, err
	}
	images, unreadable := s.List()
	i := slices.IndexFunc(images, func(i store.Image) bool { return i.Root == root })
	if i < 0 {
		missing := fmt.Errorf("the replica runs in %s, which is not among the images for local processes: start it again", root)
		return nil, errors.Join(missing, unreadable)
	}
	found := images[i]
	content, err := stored(ctx, found)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(found.Name, "@") // NAME@ID
	source := ofContent(content, name)
	source.ID = found.ID
	return source, nil
}

func ofContent(c *image.Content, name string) *bundle.ImageSource {
	var remarks []string
	for _, part := range c.LeftOut {
		remarks = append(remarks, "left out of the image: "+part)
	}
	return &bundle.ImageSource{
		Image:   bundle.Image{Name: name, OVS: c.Versions.OVS, OVN: c.Versions.OVN},
		Remarks: remarks,
		Write: func(ctx context.Context, w io.Writer) error {
			return c.Write(ctx, w, "ovs-offline:"+c.Versions.Tag(), "")
		},
	}
}

func usedInEngine(ctx context.Context, wd *workdir.Dir, name string) (*bundle.ImageSource, error) {
	e, err := engine.Connect(ctx, name)
	if err != nil {
		return nil, err
	}
	containers, err := e.List(ctx, container.LabelWorkdir, wd.Path())
	if err != nil {
		return nil, fmt.Errorf("looking for containers in %s: %w", name, err)
	}
	if len(containers) == 0 {
		return nil, fmt.Errorf("%s has no container of the replica in %s: start it again", name, wd.Path())
	}
	found, err := e.InspectImage(ctx, containers[0].ImageID)
	if err != nil {
		return nil, fmt.Errorf("the image of the replica's containers in %s: %w", name, err)
	}
	versions := image.Versions{OVS: found.Labels[container.LabelOVSVersion], OVN: found.Labels[container.LabelOVNVersion]}
	return &bundle.ImageSource{
		Image: bundle.Image{Name: versions.Tag(), OVS: versions.OVS, OVN: versions.OVN},
		Write: func(ctx context.Context, w io.Writer) error { return e.Save(ctx, found.ID, w) },
	}, nil
}

// Receive adds the image of a bundle to the images for local processes, unless it is there
// already, and returns its ID. Images that are there keep their names. from is the bundle's
// name.
func Receive(ctx context.Context, i bundle.Image, archive io.Reader, from string) (id string, err error) {
	s, err := store.Open()
	if err != nil {
		return "", err
	}
	if known, err := s.Find(i.ID); err == nil && known.ID == i.ID {
		return known.ID, nil
	}
	added, err := s.AddArchive(ctx, archive, store.AddOptions{Name: i.Name, Source: from, KeepNames: true})
	return added.ID, err
}
