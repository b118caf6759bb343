package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// duplicateMAC finds two ports of a logical switch with one MAC address. ovn-northd makes a logical flow
// for each of them, with one match and two actions, and only one of these is used.
func duplicateMAC() rule.Rule {
	return rule.Rule{
		Name: "duplicate-mac", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables()...)},
		Follows: "only one of them gets the packets to this address",
		Sources: []string{"ovn-nb(5), Logical_Switch_Port, addresses", "ovn-northd(8), table ls_in_l2_lkup"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			for _, s := range n.Switches {
				twice(holdersOf(n, s), func(h holder) []string { return h.macs }, func(mac string, a, b holder) {
					found(rule.Finding{What: fmt.Sprintf("%s and %s of %s have the same MAC address %s", a.title(d), b.title(d), d.Title("Logical_Switch", s.UUID), mac),
						Evidence: []string{inNB("Logical_Switch_Port", a.port.Name, "addresses"), inNB("Logical_Switch_Port", b.port.Name, "addresses")},
						Next:     []rule.Next{historyOf(b.port.UUID)}})
				})
			}
			return nil
		}),
	}
}
