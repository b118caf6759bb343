package drift

import (
	"slices"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// macBinding is the table of the southbound database in which OVN's routers write what they learn.
const macBinding = "MAC_Binding"

// freshness is how long before a node was collected a MAC binding counts as just learned: flows and databases
// are not collected at one moment, and clocks differ.
const freshness = 10 * time.Second

// leaveOutFresh removes from a difference the flows of MAC addresses that OVN was learning while the node was
// collected, by the timestamps of the rows, which OVN 22.09 and later write.
func (c *comparison) leaveOutFresh(diff *flowdiff.Diff) error {
	fresh, err := c.freshBindings()
	if err != nil {
		return err
	}
	left, young := 0, c.node.young()
	isFresh := func(change flowdiff.Change) bool {
		if change.Kind != flowdiff.KindFlow {
			return false
		}
		cause, _, err := c.computedNames.CauseOf(change.Text())
		isFresh := err == nil && (cause.Row == macBinding && fresh[cause.UUID] ||
			cause.Stale && rules.HasNeighbours(cause.Stage) && young[change.LineA]) // its row is newer than the database
		if isFresh {
			left++
		}
		return isFresh
	}
	for _, list := range []*[]flowdiff.Change{&diff.OnlyA, &diff.OnlyB, &diff.Changed} {
		*list = slices.DeleteFunc(*list, isFresh)
	}
	if left > 0 {
		c.report.LeftOut = append(c.report.LeftOut, LeftOut{Bridge: c.node.bridge, Flows: left,
			Why: "of MAC addresses that OVN learned while the node was collected, or within 10 seconds before it: the flows may be of another moment"})
	}
	return nil
}

// freshBindings returns the MAC bindings that were just learned when the flows were recorded; none if that
// moment is not known.
func (c *comparison) freshBindings() (map[string]bool, error) {
	recorded := c.node.manifest.FlowsRecorded(c.node.bridge)
	if flows := c.node.manifest.Collection(workdir.OVS); recorded.IsZero() && flows != nil && !flows.RecordedAbout {
		recorded = flows.Recorded // of the whole source
	}
	if recorded.IsZero() {
		return nil, nil
	}
	since := int(recorded.Add(-freshness).UnixMilli())
	fresh := map[string]bool{}
	for row, err := range c.sb.Rows(macBinding, "timestamp") {
		if err != nil {
			return nil, err
		}
		if at, _ := row.Int("timestamp"); at > since {
			fresh[row.UUID] = true
		}
	}
	return fresh, nil
}
