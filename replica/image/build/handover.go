package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// Used returns the image in which the running replica of a workdir runs: in the named
// runtime, and as local processes in the root file system in a folder. Of a replica that
// runs with this host's tools (root is ""), it is an image of these.
func Used(ctx context.Context, wd *workdir.Dir, runtime, root string) (*bundle.ImageSource, error) {
	switch {
	case runtime != process.Name:
		return usedInEngine(ctx, wd, runtime)
	case root == "":
		host, err := FromHost(ctx)
		if err != nil {
			return nil, err
		}
		return ofContent(host, image.Tag(host.Versions)), nil
	}
	return usedInStore(ctx, root)
}

func usedInStore(ctx context.Context, root string) (*bundle.ImageSource, error) {
	store, err := image.OpenStore()
	if err != nil {
		return nil, err
	}
	images, unreadable := store.List()
	index := slices.IndexFunc(images, func(stored image.Image) bool { return stored.Root == root })
	if index < 0 {
		missing := fmt.Errorf("the replica runs in %s, which is not among the images for local processes: start it again", root)
		return nil, errors.Join(missing, unreadable)
	}
	found := images[index]
	content, err := contentOf(ctx, found)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(found.Name, "@") // NAME@ID
	source := ofContent(content, name)
	source.ID = found.ID
	return source, nil
}

func ofContent(content *Content, name string) *bundle.ImageSource {
	var remarks []string
	for _, part := range content.LeftOut {
		remarks = append(remarks, "left out of the image: "+part)
	}
	return &bundle.ImageSource{
		Image:   bundle.Image{Name: name, OVS: content.Versions.OVS, OVN: content.Versions.OVN},
		Remarks: remarks,
		Write: func(ctx context.Context, to io.Writer) error {
			return content.Write(ctx, to, "ovs-offline:"+image.Tag(content.Versions), "")
		},
	}
}

// Receive adds the image of a bundle to the images for local processes, unless it is there
// already, and returns its ID. Images that are there keep their names. from is the bundle's
// name.
func Receive(ctx context.Context, sent bundle.Image, archive io.Reader, from string) (id string, err error) {
	store, err := image.OpenStore()
	if err != nil {
		return "", err
	}
	if known, err := store.Find(sent.ID); err == nil && known.ID == sent.ID {
		return known.ID, nil
	}
	added, err := store.AddArchive(ctx, archive, image.AddOptions{Name: sent.Name, Source: from, KeepNames: true})
	return added.ID, err
}

func usedInEngine(ctx context.Context, wd *workdir.Dir, name string) (*bundle.ImageSource, error) {
	service, err := engine.Connect(ctx, name)
	if err != nil {
		return nil, err
	}
	containers, err := service.List(ctx, container.LabelWorkdir, wd.Path())
	if err != nil {
		return nil, fmt.Errorf("looking for containers in %s: %w", name, err)
	}
	if len(containers) == 0 {
		return nil, fmt.Errorf("%s has no container of the replica in %s: start it again", name, wd.Path())
	}
	found, err := service.InspectImage(ctx, containers[0].ImageID)
	if err != nil {
		return nil, fmt.Errorf("the image of the replica's containers in %s: %w", name, err)
	}
	versions := labelled(found.Labels)
	return &bundle.ImageSource{
		Image: bundle.Image{Name: image.Tag(versions), OVS: versions.OVS, OVN: versions.OVN},
		Write: func(ctx context.Context, to io.Writer) error { return service.Save(ctx, found.ID, to) },
	}, nil
}
