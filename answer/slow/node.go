package slow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/snapshot/names"
)

// recordedNode is what was recorded of a node; nil what was not.
type recordedNode struct {
	survey      *flows.Survey
	offload     *Offload
	explosions  []flows.Explosion
	replayed    *flows.Replayed
	notReplayed string // why replayed is nil
	failed      error  // of the replay
	conntrack   *Conntrack
	engine      []appctl.EngineNode
	counters    counters
}

// readNode reads the flows of the datapath, the counters and the connections of a node, and replays the flows if its replica
// runs.
func readNode(ctx context.Context, n *rule.Node, known func() (*names.Names, error)) (*recordedNode, error) {
	r := &recordedNode{}
	var err error
	r.survey, r.offload, err = readDatapath(ctx, n)
	switch {
	case errors.Is(err, flows.ErrNoMegaflows):
	case err != nil:
		return nil, err
	default:
		source := flows.Source{Name: n.Name, Dir: n.Dir}
		if r.explosions, err = flows.Explosions(ctx, source, r.survey); err != nil {
			return nil, err
		}
		r.replayed, r.notReplayed, r.failed = replay(ctx, source, r.survey)
	}
	if r.counters, err = readCounters(n); err != nil {
		return nil, err
	}
	if r.conntrack, err = readConntrack(ctx, n, known); err != nil {
		return nil, err
	}
	if r.conntrack != nil {
		r.conntrack.Limit, r.conntrack.LimitFrom = r.counters.MaxConnections, r.counters.allowed
	}
	r.engine, err = readEngine(n)
	return r, err
}

// findings returns the findings about a node that need no replica.
func (r *recordedNode) findings(node string) []rule.Finding {
	entries := 0
	if r.conntrack != nil {
		entries = r.conntrack.Entries
	}
	return slices.Concat(r.counters.findings(node, entries), explosionFindings(r.explosions), offloadFindings(r.offload), conntrackFindings(r.conntrack))
}

// ofState returns the flows of the datapath that a replay found to be in a state.
func (r *recordedNode) ofState(state flows.State) (list []flows.Megaflow) {
	if r.replayed == nil {
		return nil
	}
	for _, m := range r.replayed.Flows {
		if m.State == state {
			list = append(list, m)
		}
	}
	return list
}

// mostReplayed bounds the flows of the datapath that are replayed: each takes a millisecond, and memory.
const mostReplayed = 50_000

// replay replays the recorded flows of the datapath of a node, or says why it does not.
func replay(ctx context.Context, source flows.Source, survey *flows.Survey) (_ *flows.Replayed, why string, err error) {
	if survey.Flows > mostReplayed {
		return nil, fmt.Sprintf("there are more than %d flows", mostReplayed), nil
	}
	replayed, err := flows.Replay(ctx, []flows.Source{source})
	_, down := errors.AsType[*host.UnavailableError](err)
	switch {
	case down:
		return nil, "no replica runs", nil
	case errors.Is(err, flows.ErrNoFlows):
		return nil, "no OpenFlow flows were collected", nil
	}
	return replayed, "", err
}

// readDatapath reads the recorded flows of the datapath once. The Offload is nil on a node that offloads
// nothing and is not configured to.
func readDatapath(ctx context.Context, n *rule.Node) (*flows.Survey, *Offload, error) {
	enabled, err := hwOffload(n)
	if err != nil {
		return nil, nil, err
	}
	count := newOffloadCount(enabled || n.OVS == nil)
	survey, err := flows.ReadSurvey(ctx, n.Dir, func(m appctl.Megaflow) { count.add(&m) })
	if err != nil || !count.layers || !enabled && count.Offloaded+count.Partial == 0 {
		return survey, nil, err
	}
	count.Node, count.Enabled = n.Name, enabled
	return survey, count.finish(), nil
}

// recordedEngine is the output of inc-engine/show-stats of ovn-controller.
const recordedEngine = "ovn-controller.inc-engine.show-stats"

// readEngine reads how often ovn-controller computed everything again.
func readEngine(n *rule.Node) ([]appctl.EngineNode, error) {
	file, ok, err := n.Dir.Collected(n.Dir.HostRecorded(recordedEngine))
	if err != nil || !ok {
		return nil, err
	}
	defer file.Close()
	nodes, err := appctl.Engine(file)
	slices.SortStableFunc(nodes, func(a, b appctl.EngineNode) int { return b.Recompute - a.Recompute })
	return nodes, err
}
