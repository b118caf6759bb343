package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// localnetWithoutNetwork finds ports to a physical network that do not name it.
func localnetWithoutNetwork() rule.Rule {
	return rule.Rule{
		Name: "localnet-without-network", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(switches(), rule.Some("Logical_Switch_Port", ofSwitchPort()...))},
		Follows: "the switch is connected to no physical network",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, type localnet, options:network_name"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, s := range n.Switches {
				for _, p := range s.Ports {
					if p.Type == "localnet" && p.Options["network_name"] == "" {
						found(rule.Finding{What: fmt.Sprintf("%s of %s is for a physical network, and names none", p.Title(), d.Title("Logical_Switch", s.UUID)),
							Evidence: []string{inNB("Logical_Switch_Port", p.Name, "options:network_name")}, Next: []rule.Next{historyOf(p.UUID)}})
					}
				}
			}
			return nil
		}),
	}
}
