package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
)

// megaflowLimit finds the datapaths that have nearly as many flows as ovs-vswitchd allows.
func megaflowLimit() rule.Rule {
	return rule.Rule{
		Name: "megaflow-limit", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Output(workdir.RecordedUpcalls)},
		Follows: "ovs-vswitchd deletes flows that are in use: more packets go through it, and some are lost",
		Sources: []string{"ovs-vswitchd(8), upcall/show: flows", "ovs-vswitchd.conf.db(5), Open_vSwitch, other_config:flow-limit"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.Output(workdir.RecordedUpcalls)
			for _, u := range appctl.Upcalls(text) {
				if u.Limit > 0 && u.Current*10 >= u.Limit*9 {
					found(rule.Finding{What: fmt.Sprintf("the datapath %s has %d flows, and ovs-vswitchd allows %d", u.Datapath, u.Current, u.Limit),
						Evidence: []string{"ovs-appctl upcall/show: flows"}, Next: []rule.Next{rule.Ask("slow")}})
				}
			}
			return err
		},
	}
}
