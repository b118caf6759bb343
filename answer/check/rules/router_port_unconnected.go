package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// routerPortUnconnected finds ports of routers that no port of a switch or of another router leads to. A
// port whose networks are addresses alone is a loopback of the router.
func routerPortUnconnected() rule.Rule {
	return rule.Rule{
		Name: "router-port-unconnected", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(networkTables()...)},
		Follows: "the router reaches nothing by this port",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, options:router-port"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, r := range n.Routers {
				for _, p := range r.Ports {
					if p.Switch() != nil || p.Peer != "" || !slices.ContainsFunc(p.Networks, func(network netip.Prefix) bool { return !network.IsSingleIP() }) {
						continue
					}
					found(rule.Finding{What: fmt.Sprintf("port %s of %s is connected to nothing", p.Name, d.Title("Logical_Router", r.UUID)),
						Evidence: []string{inNB("Logical_Router_Port", p.Name, "peer"), "Logical_Switch_Port in the northbound database: no options:router-port is " + p.Name},
						Next:     []rule.Next{rule.Ask("history", "nb", "--table", "Logical_Switch_Port"), historyOf(p.UUID)}})
				}
			}
			return nil
		}),
	}
}
