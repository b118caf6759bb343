package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// balancerMalformed finds VIPs that ovn-northd leaves out, because they are no address with or without a
// port, and backends that it leaves out, because they are none or of the other family. The VIPs of a
// template are variables.
func balancerMalformed() rule.Rule {
	return rule.Rule{
		Name: "balancer-malformed", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(rule.Some("Load_Balancer", "_uuid", "name", "vips", "options"))},
		Follows: "nothing is balanced to it",
		Sources: []string{"lib/ovn-util.c of OVN: bad ip address or port for load balancer key", "ovn-nb(5), Load_Balancer, vips"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, b := range n.Balancers {
				for _, vip := range vipsOf(b) {
					why := ""
					ip, _, ok := ovn.ParseVIP(vip)
					bad := slices.DeleteFunc(backendsOf(b.VIPs[vip]), func(backend string) bool {
						other, _, valid := ovn.ParseVIP(backend)
						return valid && other.Is4() == ip.Is4()
					})
					switch {
					case b.Template:
						continue
					case !ok:
						why = "it is no address with a port"
					case len(bad) > 0:
						why = "its backend " + bad[0] + " is no such address"
					default:
						continue
					}
					found(rule.Finding{What: fmt.Sprintf("%s is malformed: %s", titleOf(d, b, vip), why),
						Evidence: []string{inNB("Load_Balancer", b.Name, "vips")}, Next: []rule.Next{historyOf(b.UUID)}})
				}
			}
			return nil
		}),
	}
}
