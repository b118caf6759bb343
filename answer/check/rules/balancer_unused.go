package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// balancerUnused finds load balancers with VIPs that no switch, no router and no group refers to. All of a
// deployment are one finding. Those of a group that nothing uses do not count: a CMS keeps groups.
func balancerUnused() rule.Rule {
	return rule.Rule{
		Name: "balancer-unused", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(balancers()...)},
		Follows: "no packet to its VIPs is balanced",
		Sources: []string{"ovn-nb(5), Logical_Switch and Logical_Router, load_balancer and load_balancer_group"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			inUse := used(n)
			for _, group := range n.Groups {
				for _, uuid := range group {
					inUse[uuid] = true
				}
			}
			var idle []string
			next := rule.Ask("history", "nb", "--table", "Load_Balancer")
			for _, b := range n.Balancers {
				if !inUse[b.UUID] && slices.ContainsFunc(vipsOf(b), func(vip string) bool { return b.VIPs[vip] != "" }) {
					idle, next = append(idle, d.Title("Load_Balancer", b.UUID)), historyOf(b.UUID)
				}
			}
			if len(idle) == 0 {
				return nil
			}
			slices.Sort(idle)
			what := "no switch or router uses " + idle[0]
			if len(idle) > 1 {
				what, next = fmt.Sprintf("no switch or router uses %s: %s", phrase.Count(len(idle), "load balancer"), phrase.FirstNames(idle)), rule.Ask("history", "nb", "--table", "Load_Balancer")
			}
			found(rule.Finding{What: what, Evidence: []string{"Logical_Switch, Logical_Router and Load_Balancer_Group in the northbound database: load_balancer"}, Next: []rule.Next{next}})
			return nil
		}),
	}
}
