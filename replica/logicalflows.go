package replica

import (
	"context"
	"time"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/logicalflows"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// checkLogicalFlows adds to the report which logical flows of the OVN SB database
// the replica's ovn-trace can't parse. A failure is in the report, because everything
// else works. A check takes as long as a run of ovn-trace, which reads the whole
// database, so it is left out where ovn-trace is of the node's own release series, and
// not older: it then parses what the node's OVN does. home is the home of a shared server, or
// nil.
func (s *starter) checkLogicalFlows(ctx context.Context, kind workdir.Kind, home *workdir.Dir) error {
	if kind != workdir.SB {
		return nil
	}
	select {
	case <-s.compared:
	case <-ctx.Done():
		return ctx.Err()
	}
	recorded, running := s.report.Recorded.OVN, s.report.Running.OVN
	older := versions.Compare(running, recorded) < 0
	if recorded != "" && !older && versions.Minor(recorded) == versions.Minor(running) {
		return nil
	}
	defer s.progress.showDuration(s.wd, kind, "checking the logical flows of")()
	check := func() (*report.LogicalFlows, error) { return s.findUnparsed(ctx, kind) }
	var found *report.LogicalFlows
	var err error
	if home != nil {
		found, err = sharedLogicalFlows(ctx, home, check)
	} else {
		found, err = check()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		found = &report.LogicalFlows{Problem: err.Error()}
	}
	if found != nil && found.Unparsed > 0 {
		// Each release parses what earlier ones do, because a rolling upgrade begins with
		// ovn-controller (Documentation/intro/install/ovn-upgrades.rst of OVN).
		found.OnNode = recorded != "" && !older
	}
	s.report.LogicalFlows = found
	return nil
}

// findUnparsed lets ovn-trace parse the logical flows, with a limit on its time.
func (s *starter) findUnparsed(ctx context.Context, kind workdir.Kind) (*report.LogicalFlows, error) {
	const minimum = time.Minute
	asked := runtime.Daemon{Program: "ovsdb-server", Args: []string{s.wd.Database(kind)}}
	limited, cancel := daemon.StartContext(ctx, minimum, asked)
	defer cancel()
	found, err := logicalflows.Find(limited, s.rt, s.wd.Socket(kind), s.wd.Tracer())
	if limited.Err() != nil {
		err = daemon.StartEnded(limited)
	}
	return found, err
}

// TraceWarning returns the warning for the user of ovn-trace on a workdir's replica, ""
// for nothing.
func TraceWarning(wd *workdir.Dir, report *report.Report) string {
	warning := report.TraceWarning("the OVN SB database in " + wd.Path())
	if warning == "" {
		return ""
	}
	warning += `. "ovs-offline report" names the stages`
	manifest, err := wd.Manifest()
	if report.Recorded.OVN == "" || err != nil {
		return warning
	}
	return warning + "; to run what the node ran: " + AddImage(manifest, versions.Pair{OVN: versions.Minor(report.Recorded.OVN)}) + "; then start again"
}
