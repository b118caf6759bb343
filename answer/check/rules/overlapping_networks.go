package rules

import (
	"fmt"
	"net/netip"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// overlappingNetworks finds two ports of a router whose networks hold the same addresses. Of networks of
// different lengths, the longer one wins. The address of a host alone and link-local networks do not
// count.
func overlappingNetworks() rule.Rule {
	return rule.Rule{
		Name: "overlapping-networks", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(routers(), routerPorts())},
		Follows: "the router sends packets to these addresses by one of the two ports only",
		Sources: []string{"ovn-nb(5), Logical_Router_Port, networks", "ovn-northd(8), table lr_in_ip_routing"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, r := range n.Routers {
				for i, a := range r.Ports {
					for _, b := range r.Ports[i+1:] {
						networks, severity, ok := overlap(a, b)
						if !ok {
							continue
						}
						found(rule.Finding{Severity: severity,
							What:     fmt.Sprintf("ports %s (%s) and %s (%s) of %s have overlapping networks", a.Name, networks[0], b.Name, networks[1], d.Title("Logical_Router", r.UUID)),
							Evidence: []string{inNB("Logical_Router_Port", a.Name, "networks"), inNB("Logical_Router_Port", b.Name, "networks")},
							Next:     []rule.Next{historyOf(b.UUID), historyOf(a.UUID)}})
					}
				}
			}
			return nil
		}),
	}
}

// overlap returns the first networks of two ports that overlap.
func overlap(a, b *ovn.RouterPort) (networks [2]netip.Prefix, severity rule.Severity, ok bool) {
	counts := func(p netip.Prefix) bool { return !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() }
	for _, x := range a.Networks {
		for _, y := range b.Networks {
			if !counts(x) || !counts(y) || !x.Overlaps(y) {
				continue
			}
			if severity = rule.Warning; x.Bits() == y.Bits() {
				severity = rule.Error
			}
			return [2]netip.Prefix{x, y}, severity, true
		}
	}
	return networks, severity, false
}
