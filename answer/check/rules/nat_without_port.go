package rules

import (
	"fmt"
	"net/netip"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// natWithoutPort finds distributed floating IPs whose port does not exist, and floating IPs that lead to an address that no port
// has. Only the chassis with the port answers for a distributed one.
func natWithoutPort() rule.Rule {
	return rule.Rule{
		Name: "nat-without-port", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables(translations()...)...)},
		Follows: "no chassis answers for the floating IP",
		Sources: []string{"ovn-nb(5), NAT, logical_port and external_mac"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			all, err := natOf(d, n)
			if err != nil {
				return err
			}
			known := holders{n, map[*ovn.Switch][]holder{}}
			for _, t := range all {
				if inner, err := netip.ParseAddr(t.logical); err == nil && t.kind == "dnat_and_snat" && (t.port == "" || n.Ports[t.port] != nil) {
					if s := known.vacant([]*ovn.Router{t.router}, inner); s != nil {
						found(rule.Finding{What: fmt.Sprintf("%s leads to an address that no port of %s has", t.of(d), d.Title("Logical_Switch", s.UUID)),
							Follows:  "packets to the floating IP are lost",
							Evidence: []string{inNB("NAT", t.uuid, "logical_ip"), "Logical_Switch_Port in the northbound database: addresses"},
							Next:     []rule.Next{historyOf(t.uuid), rule.Ask("history", "nb", "--table", "Logical_Switch_Port")}})
					}
				}
				if t.kind == "dnat_and_snat" && t.externalMAC != "" && t.port != "" && n.Ports[t.port] == nil {
					found(rule.Finding{What: fmt.Sprintf("%s names port %s, which does not exist", t.of(d), t.port),
						Evidence: []string{inNB("NAT", t.uuid, "logical_port")}, Next: []rule.Next{historyOf(t.uuid), rule.Ask("history", "nb", "--table", "Logical_Switch_Port")}})
				}
			}
			return nil
		}),
	}
}
