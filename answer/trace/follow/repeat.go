package follow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow/pass"
)

// The first packet of a client that a Service with session affinity receives is dropped by
// the flow that learns its session (OVN's commit_lb_aff, since OVN 22.12). The sender repeats
// it, and the learned flow chooses the backend. So a question about the packet is one about
// its repetition too.

// endsByLearning reports whether the last flow of a pass learns a flow.
func endsByLearning(printed *pass.Pass) bool {
	last, ok := printed.Last()
	isLearn := func(line string) bool { return strings.HasPrefix(line, "learn(") }
	return ok && printed.Failed() == "" && slices.ContainsFunc(last.Lines, isLearn)
}

// repeat follows the packet that is sent again after a flow was learned. In the kernel, the
// connection that the first packet has made does not translate the addresses of the next one,
// because nothing has answered yet. The userspace datapath does: the packet has no longer the
// address of the Service, and is dropped as well, while one from another port passes.
func (s *step) repeat(ctx context.Context, frame frame) error {
	state := s.state
	last, _ := s.hop.Pass.Last()
	branch := Branch{Kind: Repeated, Stage: &last}
	branch.Why = fmt.Sprintf("the first packet of a client is dropped, while table %d of %s learns its session: this is about the packet as it is sent again", last.Table, last.Bridge)
	if s.host.Conntrack.Userspace {
		state = state.withConnections(s.initial.changedConnections())
		branch.Why = fmt.Sprintf("the first packet of a client is dropped, while table %d of %s learns its session: this is about one that follows from another source port; packets from the first one are dropped until its connection ends, because the datapath is in userspace", last.Table, last.Bridge)
	}
	s.lookups = 0
	return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) { return s.restart(ctx, state, at) })
}
