package set

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
)

// EndScratch ends what commands that computed flows have left in the workdirs, if they were
// killed.
func (s *Set) EndScratch(ctx context.Context) error {
	if s.owner != "" { // whose databases the nodes are synthesised from
		wd, err := workdir.Lock(s.owner)
		if err != nil {
			return err
		}
		defer wd.Unlock()
		if err := s.all[0].endScratch(ctx, wd); err != nil {
			return err
		}
	}
	var errs []error
	for _, n := range s.nodes {
		wd, err := n.Workdir()
		if err != nil {
			continue // the command itself names a workdir that can't be used
		}
		if err := n.endScratch(ctx, wd); err != nil {
			errs = append(errs, fmt.Errorf("%s%w", s.Label(n), err))
		}
	}
	return errors.Join(errs...)
}

func (n *Node) endScratch(ctx context.Context, wd *workdir.Dir) error {
	return scratch.EndLeft(ctx, wd, func(dir *workdir.Dir) []runtime.Runtime { return choose.For(dir, n.version).All(ctx) })
}
