package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// portBoundElsewhere finds the interfaces of a node whose logical port is bound to another chassis.
func portBoundElsewhere() rule.Rule {
	return rule.Rule{
		Name: "port-bound-elsewhere", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), bindings())},
		Follows: "packets to the port go to the other chassis, and those from this interface are dropped",
		Sources: []string{"ovn-sb(5), Port_Binding, chassis"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			own, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis {
				return err
			}
			others, err := n.Deployment.Chassis()
			if err != nil {
				return err
			}
			return eachBound(n, func(iface *node.Interface, b ovn.Binding) {
				for _, c := range others {
					if c.UUID == b.Chassis && c.UUID != own.UUID && b.Options["requested-chassis"] == "" {
						found(rule.Finding{Port: b.UUID, Causes: []string{"drift"}, What: fmt.Sprintf("interface %s is of %s, which is bound to chassis %s", iface.Name, b.Title(), c.Title()),
							Evidence: []string{"Interface " + iface.Name + " in conf.db: external_ids:iface-id", "Port_Binding " + b.Port + " in the southbound database: chassis"},
							Next:     []rule.Next{rule.Ask("history", "sb", "--record", b.Port)}})
					}
				}
			})
		},
	}
}

// eachBound calls use for each interface of the integration bridge of a node that has a number and
// names a logical port of the southbound database.
func eachBound(n *rule.Node, use func(*node.Interface, ovn.Binding)) error {
	bridges, err := n.Bridges()
	if err != nil {
		return err
	}
	bindings, err := n.Deployment.Bindings()
	if err != nil {
		return err
	}
	settings, err := n.Settings()
	if err != nil {
		return err
	}
	for _, bridge := range bridges {
		if bridge.Name != settings.Bridge() {
			continue
		}
		for iface := range node.Interfaces(bridge) {
			if b, ok := bindings[iface.IDs["iface-id"]]; ok && iface.Number > 0 {
				use(iface, b)
			}
		}
	}
	return nil
}
