package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// portNotClaimed finds the interfaces of a node whose logical port is bound to no chassis, or that
// ovn-controller has bound and not brought up.
func portNotClaimed() rule.Rule {
	return rule.Rule{
		Name: "port-not-claimed", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), bindings())},
		Follows: "the port gets no packets",
		Sources: []string{"ovn-sb(5), Port_Binding, chassis and up"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			own, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis {
				return err
			}
			interfaces := map[string]int{} // of a port; with several, logical-port-twice is the cause
			if err := eachBound(n, func(_ *node.Interface, b ovn.Binding) { interfaces[b.Port]++ }); err != nil {
				return err
			}
			return eachBound(n, func(iface *node.Interface, b ovn.Binding) {
				if interfaces[b.Port] > 1 {
					return
				}
				finding := rule.Finding{Port: b.UUID, Causes: []string{"drift"}, Evidence: []string{"Interface " + iface.Name + " in conf.db: external_ids:iface-id", "Port_Binding " + b.Port + " in the southbound database: chassis, up"},
					Next: []rule.Next{rule.Ask("timeline", "--grep", b.Port), rule.OnTheNode("ovn-appctl -t ovn-controller recompute")}}
				switch {
				case b.Chassis == "" && mayBind(b, own) && claims(b.Type):
					finding.What = fmt.Sprintf("%s has interface %s here, and no chassis has claimed it", b.Title(), iface.Name)
				case b.Chassis == own.UUID && b.Down:
					finding.What = fmt.Sprintf("%s is bound to this node with interface %s, and is not up: its flows were not installed", b.Title(), iface.Name)
				default:
					return
				}
				found(finding)
			})
		},
	}
}

// claims reports whether ovn-controller claims ports of a type for an interface.
func claims(kind string) bool { return kind == "" || kind == "l2gateway" || kind == "vtep" }
