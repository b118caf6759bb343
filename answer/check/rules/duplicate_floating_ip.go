package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// duplicateFloatingIP finds an external address that two NAT rules lead to different addresses, on routers
// of one network, or that a port of that network has as well. Rules for some packets only do not count.
func duplicateFloatingIP() rule.Rule {
	return rule.Rule{
		Name: "duplicate-floating-ip", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables(translations()...)...)},
		Follows: "two MAC addresses answer for the address, and packets go to one of them",
		Sources: []string{"ovn-nb(5), NAT, external_ip", "ovn-nbctl(8), lr-nat-add: a NAT with this type and external_ip already exists"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			all, err := natOf(d, n)
			if err != nil {
				return err
			}
			type place struct {
				network *ovn.Switch
				ip      netip.Addr
			}
			known := holders{n, map[*ovn.Switch][]holder{}}
			first := map[place]nat{}
			for _, t := range all {
				network := t.networkTables()
				if !t.incoming() || t.conditional || network == nil {
					continue
				}
				at := place{network, t.external}
				if other, taken := first[at]; taken && (other.logical != t.logical || other.router != t.router) {
					found(rule.Finding{What: fmt.Sprintf("%s and %s have the same external address", other.of(d), t.of(d)),
						Evidence: []string{inNB("NAT", other.uuid, "external_ip"), inNB("NAT", t.uuid, "external_ip")}, Next: []rule.Next{historyOf(t.uuid), historyOf(other.uuid)}})
					continue
				}
				first[at] = t
				for _, h := range known.of(network) {
					if slices.Contains(h.ips, t.external) && (h.end == nil || h.end.Router != t.router) {
						found(rule.Finding{What: fmt.Sprintf("%s of %s has the external address of %s", h.title(d), d.Title("Logical_Switch", network.UUID), t.of(d)),
							Evidence: []string{inNB("NAT", t.uuid, "external_ip"), inNB("Logical_Switch_Port", h.port.Name, "addresses")}, Next: []rule.Next{historyOf(t.uuid), historyOf(h.port.UUID)}})
					}
				}
			}
			return nil
		}),
	}
}

// of returns the rule with its router.
func (t nat) of(d *rule.Deployment) string {
	return t.title(d) + " of " + d.Title("Logical_Router", t.router.UUID)
}
