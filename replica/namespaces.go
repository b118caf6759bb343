package replica

import (
	"context"
	"fmt"

	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// roleNamespaces is what the process that keeps the network namespaces is called among the daemons.
const roleNamespaces = "network namespaces"

// startNamespaces restores the network namespaces of the node, if they were recorded. A failure costs nothing but
// them.
func (s *starter) startNamespaces(ctx context.Context) {
	if !netns.Recorded(&s.wd.Data) {
		return
	}
	s.progress.starting(roleNamespaces)
	started, err := keeper.Start(s.wd)
	if err == nil {
		s.keeper = started
		var list []*report.Namespace
		list, err = started.Report(ctx)
		for _, namespace := range list {
			s.report.Namespaces = append(s.report.Namespaces, *namespace)
		}
	}
	if err != nil {
		s.report.NamespacesProblem = err.Error()
	}
	if len(s.report.Namespaces) == 0 {
		s.closeNamespaces()
	}
}

// closeNamespaces ends the namespaces of a start that is not complete.
func (s *starter) closeNamespaces() {
	if s.keeper != nil {
		_ = s.keeper.Close()
		s.keeper = nil
	}
}

// keepNamespaces lets the namespaces live on after this process.
func (s *starter) keepNamespaces() error {
	if s.keeper == nil {
		return nil
	}
	defer s.closeNamespaces()
	if err := s.keeper.Complete(); err != nil {
		return fmt.Errorf("the network namespaces: %w", err)
	}
	return nil
}

// namespacesStatus returns the status of the process that keeps the network namespaces; ok is false if the replica
// has none.
func namespacesStatus(wd *workdir.Dir) (status DaemonStatus, ok bool) {
	found, err := Report(wd)
	if err != nil || len(found.Namespaces) == 0 {
		return status, false
	}
	status = DaemonStatus{Role: roleNamespaces, PID: keeper.PID(wd)}
	status.Running, status.Answers = status.PID != 0, status.PID != 0
	if !status.Running {
		status.Problem = "it was killed: ovs-offline start restores them"
	}
	return status, true
}

// stopNamespaces ends the network namespaces of a workdir.
func stopNamespaces(ctx context.Context, wd *workdir.Dir) error { return keeper.Stop(ctx, wd) }
