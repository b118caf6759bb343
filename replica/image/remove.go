package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
)

// ErrUsed is wrapped by the error for an image in which a replica runs.
var ErrUsed = errors.New("the image is used")

// Remove removes the image that a name or the beginning of an ID selects among all, a
// result of List. It calls stop for the workdir of each replica that runs in the image; nil
// refuses an image that is used.
func Remove(ctx context.Context, all []Listed, name string, stop func(workdir string) error) (Listed, error) {
	found, err := find(all, name)
	if err != nil {
		return Listed{}, err
	}
	for _, path := range found.UsedBy {
		if stop == nil {
			return Listed{}, fmt.Errorf("%w: the replica in %s runs in %s: stop it first, or do both with --force", ErrUsed, path, found.Name)
		}
		if err := stop(path); err != nil {
			return Listed{}, err
		}
	}
	if found.Runtime == process.Name {
		store, err := OpenStore()
		if err != nil {
			return Listed{}, err
		}
		return found, store.Remove(ctx, found.ID)
	}
	service, err := engine.Connect(ctx, found.Runtime)
	if err != nil {
		return Listed{}, err
	}
	if err := service.Untag(ctx, found.Name); err != nil {
		return Listed{}, fmt.Errorf("removing image %s from %s: %w", found.Name, found.Runtime, err)
	}
	return found, nil
}

// find returns the image that a name selects.
func find(all []Listed, name string) (Listed, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(listed Listed) bool {
		return listed.Name != name && strings.TrimPrefix(listed.Name, "localhost/") != name
	})
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(all), func(listed Listed) bool { return !isID(name, listed.ID) })
	}
	switch len(found) {
	case 0:
		return Listed{}, fmt.Errorf("%w %s: \"ovs-offline image list\" lists the images", runtime.ErrNoImage, name)
	case 1:
		return found[0], nil
	}
	return Listed{}, fmt.Errorf("%d images have the name or ID %s: name one of them, or its runtime with --runtime", len(found), name)
}

// Remove removes the image that Find returns for a name. It does not check whether a
// replica runs in it.
func (s *Store) Remove(ctx context.Context, name string) error {
	if _, err := s.Find(name); err != nil {
		return err // without a lock, and so without making a store
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	found, err := s.Find(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := filepath.Dir(found.Root)
	removing := filepath.Join(s.path, removingPrefix+filepath.Base(folder))
	err = os.Rename(folder, removing)
	if err == nil {
		err = os.RemoveAll(removing)
	}
	if err != nil {
		return fmt.Errorf("removing image %s: %w", found.Name, err)
	}
	return nil
}
