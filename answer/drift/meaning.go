package drift

import (
	"context"
	"slices"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
)

// judge computes what the differences of the report do to packets. It does not count differences that the report leaves out.
func (c *comparison) judge(ctx context.Context, running *scratch.Scratch, computed flowdiff.State, diff flowdiff.Diff) error {
	c.options.progress("what the differences mean")
	wd := c.node.wd
	conf, err := wd.Index(ctx, wd.SwitchDatabase())
	if err != nil {
		return err
	}
	defer conf.Close()
	named := &snapshot.Deployment{NB: c.nb, SB: c.sb, Nodes: []snapshot.Member{{Name: wd.Host(), Dir: wd, OVS: conf}}}
	change := prove.Change{Older: recordedWithout(c.node.state, computed, diff), Newer: computed, Limit: c.options.Meaning}
	c.report.Meaning, err = change.Judge(ctx, running, nodeName, named)
	return err
}

// recordedWithout returns the recorded state with those changes made that are no difference of the report.
func recordedWithout(recorded, computed flowdiff.State, diff flowdiff.Diff) flowdiff.State {
	reported := map[flowdiff.Change]bool{}
	for _, change := range slices.Concat(diff.OnlyA, diff.OnlyB, diff.Changed) {
		reported[flowdiff.Change{Kind: change.Kind, A: change.A, B: change.B}] = true
	}
	all := flowdiff.Compare(recorded, computed)
	gone, come := map[string]bool{}, []openflow.Flow(nil)
	for _, change := range slices.Concat(all.OnlyA, all.OnlyB, all.Changed) {
		if change.Kind != flowdiff.KindFlow || reported[flowdiff.Change{Kind: change.Kind, A: change.A, B: change.B}] || openflow.MayHaveIDs(change.B) {
			continue
		}
		gone[change.A] = true
		if change.B != "" {
			come = append(come, openflow.Flow{Text: change.B})
		}
	}
	recorded.Flows = append(slices.DeleteFunc(slices.Clone(recorded.Flows), func(f openflow.Flow) bool { return gone[f.Text] }), come...)
	return recorded
}
