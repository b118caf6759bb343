package set

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// EndScratch ends what commands that computed flows have left in the workdirs, if they were
// killed. runtimes returns the runtimes in which their daemons may run.
func (s *Set) EndScratch(ctx context.Context, runtimes runtime.Finder) error {
	if s.Owner() != "" { // whose databases the nodes are synthesised from
		wd, err := workdir.Lock(s.Owner())
		if err != nil {
			return err
		}
		defer wd.Unlock()
		if err := scratch.EndLeft(ctx, wd, runtimes); err != nil {
			return err
		}
	}
	var errs []error
	for _, n := range s.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			continue // the command itself names a workdir that can't be used
		}
		if err := scratch.EndLeft(ctx, wd, runtimes); err != nil {
			errs = append(errs, fmt.Errorf("%s%w", s.Label(n), err))
		}
	}
	return errors.Join(errs...)
}
