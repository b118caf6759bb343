package flows

import (
	"context"
	"strings"

	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
)

// compareMasks finds the fields of which a recorded flow matches too few bits. The kernel's TC has masks
// of its own, and ovs-vswitchd compares the bits that it asked for.
func (r *replay) compareMasks(recorded *recorded, traced *pass.Pass) {
	if recorded.Layer == "tc" {
		return
	}
	fields, held := odp.Lacking(recorded.Key, traced.Megaflow)
	if len(fields) == 0 {
		return
	}
	recorded.result.State, recorded.result.Lacking = Flapping, fields
	recorded.result.Why = "ovs-vswitchd looks at " + strings.Join(fields, ", ") + ", which the flow does not match: the next revalidation deletes it"
	if !held {
		recorded.result.Why = "ovs-vswitchd looks at " + strings.Join(fields, ", ") + ", which a flow of the datapath can't match for such a packet: each revalidation deletes it"
	}
	recorded.pass = traced.Detached()
}

// findExaminers names the rules for which ovs-vswitchd looks at the fields that flapping flows lack.
func (r *replay) findExaminers(ctx context.Context) error {
	var questions []*question
	for _, m := range r.list {
		if m.result.State == Flapping {
			questions = append(questions, questionsOf(r.node, m.pass, m.result.Lacking)...)
		}
	}
	if err := r.node.answer(ctx, questions); err != nil {
		return err
	}
	for _, m := range r.list {
		if m.result.State != Flapping {
			continue
		}
		n := len(m.result.Lacking)
		for _, q := range questions[:n] {
			m.result.Unwildcards = addExaminers(m.result.Unwildcards, q.found)
		}
		questions = questions[n:]
	}
	return nil
}
