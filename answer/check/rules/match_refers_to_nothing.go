package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/match"
	"ovs-offline/pkg/ovsdb"
)

// matchRefersToNothing finds ACLs, QoS rules, policy routes and NAT rules with a match that refers to an
// address set or to a port group that does not exist. For a port group G, ovn-northd makes the address
// sets G_ip4 and G_ip6, and svc_monitor_mac for health checks.
func matchRefersToNothing() rule.Rule {
	return rule.Rule{
		Name: "match-refers-to-nothing", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(matchedTables(rule.All("Address_Set", "name"))...)},
		Follows: "ovn-controller leaves its logical flows out: it applies to no packet",
		Sources: []string{"ovn-sb(5), Logical_Flow, match", "ovn-nb(5), ACL, match"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			sets, groups := map[string]bool{"svc_monitor_mac": true}, map[string]bool{}
			if err := d.NB.Each("Address_Set", func(row ovsdb.Row) { sets[row.String("name")] = true }, "name"); err != nil {
				return err
			}
			if err := d.NB.Each("Port_Group", func(row ovsdb.Row) {
				name := row.String("name")
				groups[name], sets[name+"_ip4"], sets[name+"_ip6"] = true, true, true
			}, "name"); err != nil {
				return err
			}
			return eachMatched(d, n, func(m matched) {
				missing := ""
				inSets, inGroups := match.References(m.match)
				for _, name := range inGroups {
					if !groups[name] {
						missing = "port group " + name
					}
				}
				for _, name := range inSets {
					if !sets[name] {
						missing = "address set " + name
					}
				}
				if missing != "" {
					found(rule.Finding{What: fmt.Sprintf("%s refers to %s, which does not exist", d.Title(m.table, m.uuid), missing),
						Evidence: []string{inNB(m.table, m.uuid, "match: "+m.match)}, Next: []rule.Next{historyOf(m.uuid)}})
				}
			})
		}),
	}
}
