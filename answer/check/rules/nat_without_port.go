package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// natWithoutPort finds distributed floating IPs whose port does not exist. Only the chassis with the port
// answers for such an address.
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
			for _, t := range all {
				if t.kind == "dnat_and_snat" && t.externalMAC != "" && t.port != "" && n.Ports[t.port] == nil {
					found(rule.Finding{What: fmt.Sprintf("%s names port %s, which does not exist", t.of(d), t.port),
						Evidence: []string{inNB("NAT", t.uuid, "logical_port")}, Next: []rule.Next{historyOf(t.uuid), rule.Ask("history", "nb", "--table", "Logical_Switch_Port")}})
				}
			}
			return nil
		}),
	}
}
