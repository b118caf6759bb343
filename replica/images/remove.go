package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process/store"
)

// ErrUsed is wrapped by the error for an image in which a replica runs.
var ErrUsed = errors.New("the image is used")

// Remove removes the image that a name or the beginning of an ID selects among all, a
// result of List. It refuses an image in which a replica runs; with force, it stops that
// replica first. version is the version of ovs-offline.
func Remove(ctx context.Context, all []Image, name string, force bool, version string) (Image, error) {
	i, err := find(all, name)
	if err != nil {
		return Image{}, err
	}
	for _, path := range i.UsedBy {
		if !force {
			return Image{}, fmt.Errorf("%w: the replica in %s runs in %s: stop it first, or do both with --force", ErrUsed, path, i.Name)
		}
		if err := stop(ctx, path, version); err != nil {
			return Image{}, err
		}
	}
	if i.Runtime == choose.Process {
		s, err := store.Open()
		if err != nil {
			return Image{}, err
		}
		return i, s.Remove(ctx, i.ID)
	}
	e, err := engine.Connect(ctx, i.Runtime)
	if err != nil {
		return Image{}, err
	}
	if err := e.Untag(ctx, i.Name); err != nil {
		return Image{}, fmt.Errorf("removing image %s from %s: %w", i.Name, i.Runtime, err)
	}
	return i, nil
}

// stop stops the replica of a workdir.
func stop(ctx context.Context, path, version string) error {
	wd, err := workdir.Lock(path)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	return replica.Stop(ctx, wd, choose.For(wd, version).All(ctx)...)
}

// find returns the image that a name selects.
func find(all []Image, name string) (Image, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(i Image) bool {
		return i.Name != name && strings.TrimPrefix(i.Name, "localhost/") != name
	})
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(all), func(i Image) bool { return !store.IsID(name, i.ID) })
	}
	switch len(found) {
	case 0:
		return Image{}, fmt.Errorf("%w %s: \"ovs-offline image list\" lists those that there are", runtime.ErrNoImage, name)
	case 1:
		return found[0], nil
	}
	return Image{}, fmt.Errorf("%d images have the name or ID %s: name one of them, or its runtime with --runtime", len(found), name)
}
