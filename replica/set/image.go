package set

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/replica/image/build"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// Image returns the image in which the replicas of the selected nodes run, for a file that
// holds it too. It is an error if one does not run on this machine, or in another image.
func (s *Set) Image(ctx context.Context) (*bundle.ImageSource, error) {
	outcomes := snapshot.Each(ctx, s.Snapshot, s.usedImage)
	if errs := snapshot.Failures(s.Snapshot, outcomes); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	first := outcomes[0]
	for _, other := range outcomes[1:] {
		if other.Value.Name != first.Value.Name || other.Value.ID != first.Value.ID {
			return nil, fmt.Errorf("the replicas of %s and %s run in different images, and a file holds one: save them one by one with --node", first.Node.Name, other.Node.Name)
		}
	}
	return first.Value, nil
}

// usedImage returns the image in which the replica of a node runs.
func (s *Set) usedImage(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (*bundle.ImageSource, error) {
	state, err := s.Node(n).Running(ctx, wd)
	if err != nil {
		return nil, fmt.Errorf("--with-image saves the image of a running replica: %w", err)
	}
	if state.Pod != nil {
		return nil, fmt.Errorf("the replica in %s runs in a cluster, and its image is in a registry: save without --with-image, and start it elsewhere with start --image", wd.Path())
	}
	return build.Used(ctx, wd, state.Runtime, state.Root)
}
