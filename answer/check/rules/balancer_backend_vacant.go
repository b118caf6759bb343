package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// balancerBackendVacant finds VIPs with a backend that no port has: the instance or the pod is gone, and its address stayed. Only
// addresses in a network of OVN are judged.
func balancerBackendVacant() rule.Rule {
	return rule.Rule{
		Name: "balancer-backend-vacant", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(networkTables(balancers()...)...)},
		Follows: "connections that are sent to this backend fail",
		Sources: []string{"ovn-nb(5), Load_Balancer, vips"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			known, routers := holders{n, map[*ovn.Switch][]holder{}}, balancerRouters(n)
			for _, b := range n.Balancers {
				if b.Template {
					continue
				}
				for _, vip := range vipsOf(b) {
					var gone []string
					backends := backendsOf(b.VIPs[vip])
					for _, backend := range backends {
						if ip, _, ok := ovn.ParseVIP(backend); ok && known.vacant(routers[b.UUID], ip) != nil {
							gone = append(gone, backend)
						}
					}
					if len(gone) == 0 {
						continue
					}
					f := rule.Finding{What: fmt.Sprintf("%s: no port has the address of %d of %s: %s", titleOf(d, b, vip), len(gone), phrase.Count(len(backends), "backend"), phrase.FirstNames(gone)),
						Evidence: []string{inNB("Load_Balancer", b.Name, "vips"), "Logical_Switch_Port in the northbound database: addresses"},
						Next:     []rule.Next{historyOf(b.UUID), rule.Ask("history", "nb", "--table", "Logical_Switch_Port")}}
					if len(gone) == len(backends) {
						f.Severity, f.Follows = rule.Error, "no connection to the VIP works"
					}
					found(f)
				}
			}
			return nil
		}),
	}
}

// balancerRouters returns the routers that use each load balancer, and the ones of the switches that do, by its UUID.
func balancerRouters(n *ovn.Northbound) map[string][]*ovn.Router {
	all := map[string][]*ovn.Router{}
	add := func(balancers, groups []string, routers ...*ovn.Router) {
		for _, group := range groups {
			balancers = slices.Concat(balancers, n.Groups[group])
		}
		for _, uuid := range balancers {
			for _, r := range routers {
				if !slices.Contains(all[uuid], r) {
					all[uuid] = append(all[uuid], r)
				}
			}
		}
	}
	for _, r := range n.Routers {
		add(r.Balancers, r.Groups, r)
		for _, p := range r.Ports {
			if s := p.Switch(); s != nil {
				add(s.Balancers, s.Groups, r)
			}
		}
	}
	return all
}

// vacant returns the switch to whose network an address belongs, if no port has the address. It returns nil if no network of the routers holds
// the address, and if a port may have it that is not in the database. A link-local address belongs to no such network: ovn-kubernetes uses some
// for the node itself (go-controller/pkg/config, masquerade subnets).
func (h holders) vacant(routers []*ovn.Router, ip netip.Addr) (empty *ovn.Switch) {
	if ip.IsLinkLocalUnicast() {
		return nil
	}
	for _, r := range routers {
		end := r.Reaches(ip)
		if end == nil {
			continue
		}
		s := end.Switch()
		if s == nil || h.mayHave(s, ip) {
			return nil
		}
		empty = s
	}
	return empty
}

// mayHave reports whether something at a switch has an address, or may have it: a port without fixed addresses or with security that allows the
// address, a virtual or disabled port, or a network outside.
func (h holders) mayHave(s *ovn.Switch, ip netip.Addr) bool {
	if slices.ContainsFunc(h.of(s), func(one holder) bool { return slices.Contains(one.ips, ip) }) {
		return true
	}
	return slices.ContainsFunc(s.Ports, func(p *ovn.SwitchPort) bool {
		switch p.Type {
		case "", "router", "remote", "localport":
		default: // virtual, localnet, l2gateway, vtep ...
			return true
		}
		for _, element := range p.Security {
			if slices.ContainsFunc(ovn.AllowedBy(element), func(allowed netip.Prefix) bool { return allowed.Contains(ip) }) {
				return true
			}
		}
		return slices.ContainsFunc(p.Addresses, func(text string) bool { return text == "unknown" || strings.Contains(text, ip.String()) })
	})
}
