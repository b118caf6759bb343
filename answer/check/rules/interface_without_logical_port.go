package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/snapshot/node"
)

// interfaceWithoutLogicalPort finds the interfaces whose iface-id names no logical port.
func interfaceWithoutLogicalPort() rule.Rule {
	return rule.Rule{
		Name: "interface-without-logical-port", Severity: rule.Warning,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), bindings())},
		Follows: "the interface gets no packets: its logical port was deleted, or its name is wrong",
		Sources: []string{"ovn-controller(8), external_ids:iface-id"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			_, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis {
				return err
			}
			bridges, err := n.Bridges()
			if err != nil {
				return err
			}
			bindings, err := n.Deployment.Bindings()
			settings, _ := n.Settings()
			for _, bridge := range bridges {
				if bridge.Name != settings.Bridge() {
					continue
				}
				for iface := range node.Interfaces(bridge) {
					id := iface.IDs["iface-id"]
					if _, known := bindings[id]; id != "" && !known {
						found(rule.Finding{What: fmt.Sprintf("interface %s names the logical port %s, which does not exist", iface.Name, id),
							Evidence: []string{"Interface " + iface.Name + " in conf.db: external_ids:iface-id"},
							Next:     []rule.Next{rule.Ask("history", "nb", "--record", id)}})
					}
				}
			}
			return err
		},
	}
}
