package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
)

// chassisMissing finds the nodes with an ovn-controller whose chassis the southbound database lacks.
func chassisMissing() rule.Rule {
	return rule.Rule{
		Name: "chassis-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis())},
		Follows: "no port is bound to this node, and no other node has a tunnel to it",
		Causes:  []string{"drift", "port-not-claimed"},
		Sources: []string{"ovn-controller(8), external_ids:system-id", "ovn-sb(5), Chassis"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil || n.Deployment.SB == nil || !settings.Configured() {
				return err
			}
			_, ok, err := n.ChassisOf()
			if err == nil && !ok {
				found(rule.Finding{What: fmt.Sprintf("the southbound database has no chassis %s", settings.Chassis()),
					Evidence: []string{"Open_vSwitch in conf.db: external_ids:system-id, ovn-remote " + settings.Get("ovn-remote")},
					Next:     []rule.Next{rule.Ask("timeline", "--program", "ovn-controller"), rule.OnTheNode("ovn-appctl -t ovn-controller connection-status")}})
			}
			return err
		},
	}
}
