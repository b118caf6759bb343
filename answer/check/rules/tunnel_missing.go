package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// tunnelMissing finds the chassis to which a node has no tunnel.
func tunnelMissing() rule.Rule {
	return rule.Rule{
		Name: "tunnel-missing", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.SB(chassis(), encaps())},
		Follows: "packets of logical networks from this node to the other one are lost",
		Sources: []string{"ovn-sb(5), Encap", "chassis_tunnel_add in controller/encaps.c of OVN"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil || settings.Get("ovn-transport-zones") != "" {
				return err
			}
			return withTunnels(n, func(own ovn.Chassis, all []ovn.Chassis, tunnels []*node.Interface) {
				for _, c := range all {
					if c.UUID != own.UUID && len(c.Encaps) > 0 && !sameAddress(own, c) && !reaches(tunnels, c) {
						found(rule.Finding{What: fmt.Sprintf("there is no tunnel to chassis %s (%s)", c.Title(), addressesOf(c)),
							Evidence: []string{"Encap of chassis " + c.Name + " in the southbound database", "Interface in conf.db: options:remote_ip"},
							Next:     []rule.Next{rule.Ask("timeline", "--program", "ovn-controller"), rule.OnTheNode("ovs-vsctl show")}})
					}
				}
			})
		},
	}
}
