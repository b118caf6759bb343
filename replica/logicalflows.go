package replica

import (
	"context"
	"time"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/logicalflows"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/daemon"
)

// checkLogicalFlows adds to the report which logical flows of the OVN SB database
// the replica's ovn-trace can't parse. A failure is in the report, because everything
// else works.
func (s *starter) checkLogicalFlows(ctx context.Context, k workdir.Kind) error {
	if k != workdir.SB {
		return nil
	}
	defer s.showDuration(k, "checking the logical flows of")()
	const minimum = time.Minute
	limited, cancel := daemon.StartContext(ctx, minimum, server(s.wd, k))
	defer cancel()
	found, err := logicalflows.Find(limited, s.rt, s.wd.Socket(k), s.wd.Tracer())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		err = daemon.StartEnded(limited)
	}
	if err != nil {
		found = &report.LogicalFlows{Problem: err.Error()}
	}
	s.report.LogicalFlows = found
	return nil
}
