package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// natWithoutGateway finds routers with NAT rules that are on no chassis and have no distributed gateway
// port: ovn-northd makes no logical flows of the rules.
func natWithoutGateway() rule.Rule {
	return rule.Rule{
		Name: "nat-without-gateway", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(routers(), routerPorts(), rule.All("Logical_Router", "nat"))},
		Follows: "no address is translated: floating IPs do not answer, and instances do not reach the outside",
		Sources: []string{"ovn-nb(5), Logical_Router, nat and options:chassis", "ovn-architecture(7), Distributed Gateway Ports"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, r := range n.Routers {
				if len(r.NAT) > 0 && !r.Disabled && !r.HasGateway() {
					found(rule.Finding{What: fmt.Sprintf("%s has %s and no gateway", d.Title("Logical_Router", r.UUID), phrase.Count(len(r.NAT), "NAT rule")),
						Evidence: []string{inNB("Logical_Router", r.Name, "nat, options:chassis"), "Logical_Router_Port of these in the northbound database: gateway_chassis, ha_chassis_group"},
						Next:     []rule.Next{rule.Ask("history", "nb", "--table", "Gateway_Chassis"), historyOf(r.UUID)}})
				}
			}
			return nil
		}),
	}
}
