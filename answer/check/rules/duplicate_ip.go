package rules

import (
	"fmt"
	"net/netip"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// duplicateIP finds two ports of a logical switch with one IP address. A port of a router counts with the
// addresses of the router. Virtual ports do not count, nor do the addresses that port security allows
// besides the port's own: several ports may have these, and one uses them.
func duplicateIP() rule.Rule {
	return rule.Rule{
		Name: "duplicate-ip", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables()...)},
		Follows: "OVN answers ARP and ND requests for the address with one of the two MAC addresses, and the other port gets nothing",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, addresses", "ovn-northd(8), table ls_in_arp_rsp", "ovn-nbctl(8), lsp-set-addresses: duplicate IPv4 address"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, s := range n.Switches {
				twice(holdersOf(n, s), func(h holder) []netip.Addr { return h.ips }, func(ip netip.Addr, a, b holder) {
					found(rule.Finding{What: fmt.Sprintf("%s and %s of %s have the same IP address %s", a.title(d), b.title(d), d.Title("Logical_Switch", s.UUID), ip),
						Evidence: []string{inNB("Logical_Switch_Port", a.port.Name, "addresses"), inNB("Logical_Switch_Port", b.port.Name, "addresses")},
						Next:     []rule.Next{historyOf(b.port.UUID)}})
				})
			}
			return nil
		}),
	}
}
