package check

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/show"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// ErrNothing is wrapped for a set without data.
var ErrNothing = errors.New("nothing to check")

// usable returns the nodes of a set that have data and whose OVS databases can be read, and sentences
// about the others.
func usable(ctx context.Context, selected *snapshot.Snapshot) (*snapshot.Snapshot, []string, error) {
	var good []*snapshot.Node
	var bad []string
	empty := true
	for _, node := range selected.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return nil, nil, err
		}
		data, _, err := wd.DataFiles()
		if err != nil {
			return nil, nil, err
		}
		empty = empty && len(data) == 0
		if err := readable(ctx, wd, wd.SwitchDatabase()); err != nil {
			bad = append(bad, fmt.Sprintf("node %s: %v", node.Name, err))
			continue
		}
		good = append(good, node)
	}
	switch {
	case empty:
		return nil, nil, show.Advise(fmt.Errorf("%w: nothing was collected in %s; begin with", ErrNothing, selected.Folder()), "", "collect", "PATH")
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case len(bad) == 0:
		return selected, nil, nil
	case len(good) == 0:
		return nil, nil, fmt.Errorf("%w: %s", ErrNothing, bad[0])
	}
	return selected.Only(good), bad, nil
}

// readable returns why an OVS database can't be read; nil for one that can, or that was not collected.
func readable(ctx context.Context, wd *workdir.Dir, path string) error {
	if path == "" {
		return nil
	}
	index, err := wd.Index(ctx, path)
	index.Close()
	return err
}
