package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/check/rule"
	"ovs-offline/internal/phrase"
)

// balancerWithoutBackends finds VIPs without backends, as of a service of Kubernetes without endpoints. All
// of a deployment are one finding. Load balancers that nothing uses do not count.
func balancerWithoutBackends() rule.Rule {
	return rule.Rule{
		Name: "balancer-without-backends", Severity: rule.Warning,
		Follows: "connections to them are rejected, or their packets are dropped",
		Sources: []string{"ovn-nb(5), Load_Balancer, vips and options:reject"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *rule.Northbound, found func(rule.Finding)) error {
			inUse := used(n)
			var empty []string
			var first *rule.Balancer
			for _, b := range n.Balancers {
				for _, vip := range vipsOf(b) {
					if inUse[b.UUID] && !b.Template && len(backendsOf(b.VIPs[vip])) == 0 {
						empty, first = append(empty, titleOf(d, b, vip)), b
					}
				}
			}
			if len(empty) == 0 {
				return nil
			}
			slices.Sort(empty)
			f := rule.Finding{What: empty[0] + " has no backends", Evidence: []string{"Load_Balancer in the northbound database: vips"}, Next: []string{historyOf(first.UUID)}}
			if len(empty) > 1 {
				f.What = fmt.Sprintf("%s have no backends: %s", phrase.Count(len(empty), "VIP"), phrase.FirstNames(empty))
				f.Next = []string{"ovs-offline history nb --table Load_Balancer --column vips"}
			}
			found(f)
			return nil
		}),
	}
}
