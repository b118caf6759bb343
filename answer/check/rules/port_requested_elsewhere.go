package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// portRequestedElsewhere finds the interfaces of a node whose logical port was requested for other
// chassis.
func portRequestedElsewhere() rule.Rule {
	return rule.Rule{
		Name: "port-requested-elsewhere", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), bindings())},
		Follows: "ovn-controller does not bind the port here, and the interface gets no packets",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, options:requested-chassis"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			own, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis {
				return err
			}
			return eachBound(n, func(iface *node.Interface, b ovn.Binding) {
				requested := b.Options["requested-chassis"]
				if mayBind(b, own) {
					return
				}
				found(rule.Finding{Port: b.UUID, Causes: []string{"drift"}, What: fmt.Sprintf("interface %s is of %s, which was requested for chassis %s", iface.Name, b.Title(), requested),
					Evidence: []string{"Interface " + iface.Name + " in conf.db: external_ids:iface-id", "Port_Binding " + b.Port + " in the southbound database: options:requested-chassis"},
					Next:     []rule.Next{rule.Ask("history", "sb", "--record", b.Port)}})
			})
		},
	}
}

// mayBind reports whether a port was requested for no chassis, or for this one.
func mayBind(b ovn.Binding, own ovn.Chassis) bool {
	requested := b.Options["requested-chassis"]
	names := strings.Split(requested, ",")
	return requested == "" || slices.Contains(names, own.Name) || slices.Contains(names, own.Hostname)
}
