package whatif

import (
	"context"

	"ovs-offline/answer/prove"
	"ovs-offline/snapshot"
)

// judge computes what the changes of nodes between two moments do to packets.
func (s *Session) judge(ctx context.Context, before, after moment, results []NodeResult) (err error) {
	for i, node := range s.options.Nodes {
		if results[i].Equal() {
			continue
		}
		s.progress("what the change means on " + node.Name)
		change := prove.Change{Older: before.states[node.Name], Newer: after.states[node.Name], Limit: s.options.Meaning}
		if results[i].Meaning, err = change.Judge(ctx, s.scratch, node.Name, before.deployment(node), after.deployment(node)); err != nil {
			return err
		}
	}
	return nil
}

// deployment returns the deployment of a node alone, with the databases of the moment.
func (m *moment) deployment(node snapshot.Member) *snapshot.Deployment {
	return &snapshot.Deployment{NB: m.nb, SB: m.sb, Nodes: []snapshot.Member{{Name: node.Name, Dir: node.Dir, OVS: m.ovs[node.Name]}}}
}
