package trace

import (
	"fmt"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/snapshot/rules"
)

// readStale reads the logs of the databases once for all stages of a pass: they describe the flows whose rows were deleted.
func (n *node) readStale(stages []pass.Stage) error {
	tables, err := n.pipelines()
	if err != nil {
		return err
	}
	var flows []rules.Flow
	for _, passed := range stages {
		if layout, ovn := tables.layouts[passed.Bridge]; ovn && !passed.Miss && passed.Chain == "" {
			flows = append(flows, rules.FlowOf(passed.Key(), layout))
		}
	}
	if len(flows) == 0 {
		return nil
	}
	return n.zone.rules.ReadStale(flows...)
}

// isStale reports whether the flow of a rule is stale. Of one whose deleted row is not known, a southbound database of
// another moment than the flows tells nothing: it may be the older one.
func (n *node) isStale(rule rules.Rule) bool {
	return rule.Stale && (rule.Row != "" || len(n.trust.Doubts) == 0)
}

// noteStale remarks how many stale flows the packet meets on its way to the end that decides. The packet would take
// another way, or end there, on a node that has what the databases call for.
func (q *inquiry) noteStale() {
	type group struct{ node, rule string }
	var order []group
	count := map[group]int{}
	hop, _ := q.answer.Deciding()
	for _, i := range q.answer.Chain(hop) {
		for _, stage := range q.answer.Path[i].Stages {
			of := group{q.answer.Path[i].Node, stage.Rule}
			if !stage.Stale {
				continue
			}
			if count[of]++; count[of] == 1 {
				order = append(order, of)
			}
		}
	}
	for _, of := range order {
		q.remark(fmt.Sprintf("on node %s: the packet meets %s of %s", of.node, phrase.Count(count[of], "stale flow"), of.rule))
		q.assume(fmt.Sprintf("%s keeps the stale flows, which its databases no longer call for", of.node))
	}
}
