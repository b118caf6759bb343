package cmd

import (
	"context"
	"fmt"

	"ovs-offline/desired/scratch"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/set"
)

// endScratch ends what a command that computed flows has left in a workdir, if it was
// killed.
func endScratch(ctx context.Context, wd *workdir.Dir) error {
	return scratch.EndLeft(ctx, wd, func(dir *workdir.Dir) []runtime.Runtime { return choose.For(dir, version).All(ctx) })
}

// endScratches works like endScratch for the nodes of a set.
func endScratches(ctx context.Context, s *set.Set) error {
	if s.Owner() != "" { // whose databases the nodes are synthesised from
		wd, err := workdir.Lock(s.Owner())
		if err != nil {
			return err
		}
		defer wd.Unlock()
		if err := endScratch(ctx, wd); err != nil {
			return err
		}
	}
	var errs []error
	for _, n := range s.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			continue // the command itself names a workdir that can't be used
		}
		if err := endScratch(ctx, wd); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return worst(errs...)
}
