package rules

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// duplicateVIP finds two load balancers of one switch or router with the same VIP and other backends.
func duplicateVIP() rule.Rule {
	return rule.Rule{
		Name: "duplicate-vip", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(balancers()...)},
		Follows: "one of the two gets all connections to the VIP",
		Sources: []string{"ovn-nb(5), Load_Balancer, vips", "ovn-northd(8), table ls_in_lb"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			v := vipFinder{balancers: map[string]*ovn.Balancer{}, northbound: n, shared: map[string]map[string]*ovn.Balancer{}, told: map[string]bool{}}
			v.tell = func(owner string, a, b *ovn.Balancer, vip string) {
				found(rule.Finding{What: fmt.Sprintf("%s is a VIP of %s too, and %s uses both", titleOf(d, a, vip), d.Title("Load_Balancer", b.UUID), owner),
					Evidence: []string{inNB("Load_Balancer", a.Name, "vips"), inNB("Load_Balancer", b.Name, "vips")}, Next: []rule.Next{historyOf(a.UUID), historyOf(b.UUID)}})
			}
			for _, b := range n.Balancers {
				v.balancers[b.UUID] = b
			}
			for _, s := range n.Switches {
				v.look(func() string { return d.Title("Logical_Switch", s.UUID) }, s.Balancers, s.Groups)
			}
			for _, r := range n.Routers {
				v.look(func() string { return d.Title("Logical_Router", r.UUID) }, r.Balancers, r.Groups)
			}
			return nil
		}),
	}
}

// vipFinder finds VIPs that several load balancers have. Each pair of load balancers is told once: a
// thousand switches may use them.
type vipFinder struct {
	northbound *ovn.Northbound
	balancers  map[string]*ovn.Balancer
	shared     map[string]map[string]*ovn.Balancer // by groups, and by VIP and protocol
	told       map[string]bool
	tell       func(owner string, a, b *ovn.Balancer, vip string)
}

// look looks at the load balancers of a switch or a router.
func (v *vipFinder) look(owner func() string, own, groups []string) {
	ofGroups := v.ofGroups(owner, groups)
	mine := map[string]*ovn.Balancer{}
	for _, uuid := range own {
		v.add(owner, mine, ofGroups, v.balancers[uuid])
	}
}

// ofGroups returns the VIPs of the load balancers in groups.
func (v *vipFinder) ofGroups(owner func() string, groups []string) map[string]*ovn.Balancer {
	slices.Sort(groups)
	key := strings.Join(groups, " ")
	known, ok := v.shared[key]
	if ok {
		return known
	}
	known = map[string]*ovn.Balancer{}
	for _, group := range groups {
		for _, uuid := range v.northbound.Groups[group] {
			v.add(owner, known, nil, v.balancers[uuid])
		}
	}
	v.shared[key] = known
	return known
}

// add adds the VIPs of a load balancer to the known ones.
func (v *vipFinder) add(owner func() string, known, others map[string]*ovn.Balancer, b *ovn.Balancer) {
	if b == nil || b.Template {
		return
	}
	for vip, backends := range b.VIPs {
		key := b.Protocol + " " + vip
		other := known[key]
		if other == nil {
			other = others[key]
		}
		known[key] = b
		if other == nil || other == b || sameBackends(other.VIPs[vip], backends) {
			continue
		}
		first, second := other, b
		if second.Name < first.Name {
			first, second = second, first
		}
		if pair := first.UUID + second.UUID + vip; !v.told[pair] {
			v.told[pair] = true
			v.tell(owner(), first, second, vip)
		}
	}
}

func sameBackends(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values(backendsOf(a))), slices.Sorted(slices.Values(backendsOf(b))))
}
