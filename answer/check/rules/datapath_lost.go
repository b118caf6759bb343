package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
)

// Bounds of the numbers of a datapath above which it has a finding.
const (
	maxLost     = 100 // packets: a few are lost at each start
	maxMasks    = 128 // above, a lookup takes longer than the rest of the way of a packet
	maxPerMatch = 20  // masks that a lookup tries on average
)

// datapathLost finds the datapaths that lost packets on their way to ovs-vswitchd.
func datapathLost() rule.Rule {
	return rule.Rule{
		Name: "datapath-lost-packets", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Output(workdir.RecordedDatapathShow)},
		Follows: "first packets of connections are lost: the queue to ovs-vswitchd was full",
		Sources: []string{"ovs-dpctl(8), show: lost"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.Output(workdir.RecordedDatapathShow)
			for _, d := range appctl.Datapaths(text) {
				if d.Lost > maxLost {
					found(rule.Finding{What: fmt.Sprintf("the datapath%s lost %d packets on their way to ovs-vswitchd, of %d", named(d.Name), d.Lost, d.Missed+d.Lost),
						Evidence: []string{"ovs-appctl dpctl/show: lookups"},
						Next:     []rule.Next{rule.Ask("slow"), rule.Ask("timeline", "--grep", "lost packet"), rule.Elsewhere("on the node, twice", "ovs-appctl dpctl/show")}})
				}
			}
			return err
		},
	}
}

// datapathMasks finds the datapaths whose lookups try many masks.
func datapathMasks() rule.Rule {
	return rule.Rule{
		Name: "datapath-many-masks", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Output(workdir.RecordedDatapathShow)},
		Follows: "each lookup tries the masks one after the other: every packet takes longer",
		Sources: []string{"ovs-dpctl(8), show: masks"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.Output(workdir.RecordedDatapathShow)
			for _, d := range appctl.Datapaths(text) {
				if d.Masks > maxMasks || d.PerMatch > maxPerMatch {
					found(rule.Finding{What: fmt.Sprintf("the datapath%s has %d masks, and tries %.1f for each packet", named(d.Name), d.Masks, d.PerMatch),
						Evidence: []string{"ovs-appctl dpctl/show: masks"}, Next: []rule.Next{rule.Ask("slow")}})
				}
			}
			return err
		},
	}
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}
