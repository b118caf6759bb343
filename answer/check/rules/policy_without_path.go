package rules

import (
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// policyWithoutPath finds policy routes that lead to a next hop that no port of the router has a network
// for: ovn-northd makes no logical flows of them.
func policyWithoutPath() rule.Rule {
	return rule.Rule{
		Name: "policy-without-path", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(routers(), routerPorts(), rule.All("Logical_Router", "policies"), rule.All("Logical_Router_Policy", "_uuid", "action", "nexthop", "nexthops", "output_port", "match", "priority"))},
		Follows: "the policy is not applied to any packet",
		Sources: []string{"northd/northd.c of OVN: No path for routing policy", "ovn-nb(5), Logical_Router_Policy, nexthops"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			return eachOf(d, n, "Logical_Router_Policy", func(r *ovn.Router) []string { return r.Policies }, func(r *ovn.Router, row ovsdb.Row) {
				if row.String("action") != "reroute" || len(row.UUIDs("output_port")) > 0 {
					return
				}
				for _, hop := range hopsOf(row) {
					next, ok := nextHop(hop)
					if ok && r.Reaches(next) != nil {
						continue
					}
					found(rule.Finding{What: fmt.Sprintf("%s of %s: no port of the router has a network with next hop %s", d.Title("Logical_Router_Policy", row.UUID), d.Title("Logical_Router", r.UUID), hop),
						Evidence: []string{inNB("Logical_Router_Policy", row.UUID, "nexthops"), inNB("Logical_Router", r.Name, "ports")},
						Next:     []rule.Next{historyOf(row.UUID)}})
					return
				}
			}, "action", "nexthop", "nexthops", "output_port", "match", "priority")
		}),
	}
}

// hopsOf returns the next hops of a policy. The column nexthop is that of OVN before 21.03; kube-ovn
// writes an empty one.
func hopsOf(row ovsdb.Row) []string {
	hops := row.Strings("nexthops")
	if len(hops) == 0 {
		hops = row.Strings("nexthop")
	}
	var found []string
	for _, hop := range hops {
		if hop = strings.TrimSpace(hop); hop != "" {
			found = append(found, hop)
		}
	}
	return found
}
