package rules

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// tunnelToNowhere finds the tunnels of the integration bridge to addresses that no chassis has.
func tunnelToNowhere() rule.Rule {
	return rule.Rule{
		Name: "tunnel-to-nowhere", Severity: rule.Warning,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), encaps())},
		Follows: "copies of broadcasts may be sent to a machine that is gone",
		Sources: []string{"ovn-sb(5), Encap", "ovs-vswitchd.conf.db(5), Interface, options:remote_ip"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			return withTunnels(n, func(_ ovn.Chassis, all []ovn.Chassis, tunnels []*node.Interface) {
				for _, tunnel := range tunnels {
					if !slices.ContainsFunc(all, func(c ovn.Chassis) bool { return reaches([]*node.Interface{tunnel}, c) }) {
						found(rule.Finding{What: fmt.Sprintf("the tunnel %s leads to %s, which is the address of no chassis", tunnel.Name, tunnel.Options["remote_ip"]),
							Evidence: []string{"Interface " + tunnel.Name + " in conf.db: options:remote_ip"},
							Next:     []rule.Next{rule.Ask("history", "sb", "--table", "Chassis")}})
					}
				}
			})
		},
	}
}
