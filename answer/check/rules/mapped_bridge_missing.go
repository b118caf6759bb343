package rules

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/snapshot/node"
)

// mappedBridgeMissing finds the physical networks whose bridge does not exist.
func mappedBridgeMissing() rule.Rule {
	return rule.Rule{
		Name: "mapped-bridge-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS()},
		Follows: "ports of that network on this node do not reach the physical network",
		Sources: []string{"ovn-controller(8), external_ids:ovn-bridge-mappings"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges, err := n.Bridges()
			if err != nil || len(bridges) == 0 {
				return err
			}
			settings, err := n.Settings()
			if err != nil {
				return err
			}
			for network, name := range settings.Mappings() {
				if !slices.ContainsFunc(bridges, func(b *node.Bridge) bool { return b.Name == name }) {
					found(rule.Finding{What: fmt.Sprintf("the physical network %s is mapped to bridge %s, which does not exist", network, name),
						Evidence: []string{"Open_vSwitch in conf.db: external_ids:ovn-bridge-mappings"},
						Next:     []rule.Next{rule.OnTheNode("ovs-vsctl list-br")}})
				}
			}
			return nil
		},
	}
}
