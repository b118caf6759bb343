package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// tunnelAddressTwice finds two chassis with one tunnel address, each with another type of tunnels: the
// southbound database refuses a second one of the same type.
func tunnelAddressTwice() rule.Rule {
	return rule.Rule{
		Name: "tunnel-address-twice", Severity: rule.Error,
		Needs:   []rule.Data{rule.SB(chassis(), encaps())},
		Follows: "packets for the one node go to the other",
		Sources: []string{"ovn-sb(5), Encap, ip and type"},
		Deployment: ofNorthbound(func(d *rule.Deployment, _ *ovn.Northbound, found func(rule.Finding)) error {
			chassis, err := d.Chassis()
			if err != nil {
				return err
			}
			for i, a := range chassis {
				for _, b := range chassis[i+1:] {
					at := slices.IndexFunc(a.Encaps, func(x ovn.Encap) bool {
						return slices.ContainsFunc(b.Encaps, func(y ovn.Encap) bool { return x.IP == y.IP })
					})
					if at >= 0 {
						found(rule.Finding{What: fmt.Sprintf("chassis %s and %s have the same tunnel address %s", a.Title(), b.Title(), a.Encaps[at].IP),
							Evidence: []string{"Encap in the southbound database: ip"}, Next: []rule.Next{rule.Ask("history", "sb", "--table", "Encap"), rule.Ask("history", "sb", "--table", "Chassis")}})
					}
				}
			}
			return nil
		}),
	}
}
