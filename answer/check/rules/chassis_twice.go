package rules

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// chassisTwice finds the machines with more than one chassis, and the addresses of several chassis.
func chassisTwice() rule.Rule {
	return rule.Rule{
		Name: "chassis-twice", Severity: rule.Warning,
		Needs:   []rule.Data{rule.SB(chassis(), encaps())},
		Follows: "an old chassis keeps ports bound, and other nodes keep tunnels to it",
		Sources: []string{"ovn-sb(5), Chassis: hostname, encaps", "ovn-sbctl(8), chassis-del"},
		Deployment: func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
			chassis, err := d.Chassis()
			if err != nil {
				return err
			}
			for _, property := range []struct {
				what string
				of   func(ovn.Chassis) string
			}{
				{"the host name %s", func(c ovn.Chassis) string { return c.Hostname }},
				{"the tunnel address %s", func(c ovn.Chassis) string {
					if len(c.Encaps) == 0 {
						return ""
					}
					return slices.MinFunc(c.Encaps, func(a, b ovn.Encap) int { return cmp.Compare(a.IP, b.IP) }).IP
				}},
			} {
				sharing := map[string][]string{}
				for _, c := range chassis {
					if value := property.of(c); value != "" {
						sharing[value] = append(sharing[value], c.Name)
					}
				}
				for value, names := range sharing {
					if len(names) < 2 {
						continue
					}
					slices.Sort(names)
					found(rule.Finding{What: fmt.Sprintf("%s have "+property.what+": %s", phrase.Count(len(names), "chassis"), value, phrase.FirstNames(names)),
						Evidence: []string{"Chassis and Encap in the southbound database"},
						Next:     []rule.Next{rule.Ask("history", "sb", "--table", "Chassis"), rule.Elsewhere("on the central node, for the old one", "ovn-sbctl chassis-del NAME")}})
				}
			}
			return nil
		},
	}
}
