package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// bfdSessionDown finds BFD sessions of routers that are down. ovn-northd leaves out the routes and policies
// of such a session.
func bfdSessionDown() rule.Rule {
	return rule.Rule{
		Name: "bfd-session-down", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(rule.Some("BFD", "status", "logical_port", "dst_ip"))},
		Follows: "the routes with this session are not used",
		Sources: []string{"ovn-nb(5), BFD, status"},
		Deployment: ofNorthbound(func(d *rule.Deployment, _ *ovn.Northbound, found func(rule.Finding)) error {
			return d.NB.Each("BFD", func(row ovsdb.Row) {
				if row.String("status") != "down" {
					return
				}
				found(rule.Finding{What: fmt.Sprintf("the BFD session of router port %s with %s is down", row.String("logical_port"), row.String("dst_ip")),
					Evidence: []string{inNB("BFD", row.UUID, "status")}, Next: []rule.Next{historyOf(row.UUID), rule.Ask("history", "sb", "--table", "BFD")}})
			}, "status", "logical_port", "dst_ip")
		}),
	}
}
