package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// backendsOf returns the backends of a VIP.
func backendsOf(text string) []string {
	var found []string
	for backend := range strings.SplitSeq(text, ",") {
		if backend = strings.TrimSpace(backend); backend != "" {
			found = append(found, backend)
		}
	}
	return found
}

// vipsOf returns the VIPs of a load balancer in order.
func vipsOf(b *ovn.Balancer) []string { return slices.Sorted(maps.Keys(b.VIPs)) }

// titleOf returns a VIP with what users call its load balancer.
func titleOf(d *rule.Deployment, b *ovn.Balancer, vip string) string {
	return "VIP " + vip + " of " + d.Title("Load_Balancer", b.UUID)
}

// healthCheck is a row of the table Load_Balancer_Health_Check, with its load balancer.
type healthCheck struct {
	balancer  *ovn.Balancer
	uuid, vip string
}

// healthChecks returns the health checks of VIPs that their load balancers have.
func healthChecks(d *rule.Deployment, n *ovn.Northbound) ([]healthCheck, error) {
	vips := map[string]string{}
	if err := d.NB.Each("Load_Balancer_Health_Check", func(row ovsdb.Row) { vips[row.UUID] = row.String("vip") }, "vip"); err != nil {
		return nil, err
	}
	var all []healthCheck
	for _, b := range n.Balancers {
		for _, uuid := range b.Checks {
			if vip, ok := vips[uuid]; ok && b.VIPs[vip] != "" && !b.Template {
				all = append(all, healthCheck{b, uuid, vip})
			}
		}
	}
	slices.SortFunc(all, func(a, b healthCheck) int {
		return cmp.Or(cmp.Compare(a.balancer.Name, b.balancer.Name), cmp.Compare(a.vip, b.vip))
	})
	return all, nil
}

// used returns the UUIDs of the load balancers that a switch or a router uses, by itself or in a group.
func used(n *ovn.Northbound) map[string]bool {
	all := map[string]bool{}
	groups := map[string]bool{}
	add := func(balancers, of []string) {
		for _, uuid := range balancers {
			all[uuid] = true
		}
		for _, uuid := range of {
			groups[uuid] = true
		}
	}
	for _, s := range n.Switches {
		add(s.Balancers, s.Groups)
	}
	for _, r := range n.Routers {
		add(r.Balancers, r.Groups)
	}
	for uuid := range groups {
		add(n.Groups[uuid], nil)
	}
	return all
}
