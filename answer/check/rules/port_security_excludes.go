package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// portSecurityExcludes finds ports of instances whose port security does not allow an address of their own.
// An element of port_security without IP addresses allows all of them, and so does no element at all.
func portSecurityExcludes() rule.Rule {
	return rule.Rule{
		Name: "port-security-excludes", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(switches(), rule.Some("Logical_Switch_Port", ofSwitchPort()...))},
		Follows: "OVN drops what the port sends with the address, and what is sent to it",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, port_security"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, s := range n.Switches {
				for _, p := range s.Ports {
					if p.Type != "" || p.Disabled || len(p.Security) == 0 {
						continue
					}
					if address := excluded(p); address != "" {
						found(rule.Finding{What: fmt.Sprintf("the port security of %s of %s does not allow its own address %s", p.Title(), d.Title("Logical_Switch", s.UUID), address),
							Evidence: []string{inNB("Logical_Switch_Port", p.Name, "addresses, port_security")}, Next: []rule.Next{historyOf(p.UUID)}})
					}
				}
			}
			return nil
		}),
	}
}

// excluded returns the first address of a port that its port security does not allow, "" for none.
func excluded(p *ovn.SwitchPort) string {
	for _, text := range p.Assigned() {
		mac, ips := ovn.ParseAddresses(text)
		allowed, known := []netip.Prefix{}, false
		for _, element := range p.Security {
			own, prefixes := strings.Fields(element), ovn.AllowedBy(element)
			if mac == "" || len(own) == 0 || ovn.MAC(own[0]) != mac {
				continue
			}
			if known = true; len(prefixes) == 0 {
				ips = nil // all of them are allowed
			}
			allowed = append(allowed, prefixes...)
		}
		if mac != "" && !known {
			return mac
		}
		for _, ip := range ips {
			if !ip.IsLinkLocalUnicast() && !slices.ContainsFunc(allowed, func(prefix netip.Prefix) bool { return prefix.Contains(ip) }) {
				return ip.String()
			}
		}
	}
	return ""
}
