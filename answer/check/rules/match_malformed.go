package rules

import (
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/match"
	"ovs-offline/internal/phrase"
)

// matchMalformed finds ACLs, QoS rules, policy routes and NAT rules with a match that ovn-controller can't
// read. ovn-northd writes it into logical flows as it is, and ovn-controller leaves these out.
func matchMalformed() rule.Rule {
	return rule.Rule{
		Name: "match-malformed", Severity: rule.Error,
		Needs:   []rule.Data{rule.Either(rule.NB(rule.Some("ACL", "match")), rule.NB(rule.Some("QoS", "match")), rule.NB(rule.Some("Logical_Router_Policy", "match")))},
		Follows: "it applies to no packet",
		Sources: []string{"ovn-sb(5), Logical_Flow, match", "controller/lflow.c of OVN: error parsing match"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			return eachMatched(d, n, func(m matched) {
				if why := match.Problem(m.match); why != "" {
					evidence, next := []string{inNB(m.table, m.uuid, "match")}, []rule.Next{historyOf(m.uuid)}
					if m.unnamed {
						evidence, next = []string{d.Title(m.table, m.uuid) + " in a list: match"}, nil
					}
					found(rule.Finding{What: fmt.Sprintf("%s: its match can't be read: %s, in %s", d.Title(m.table, m.uuid), why, phrase.Shorten(m.match, 200)),
						Evidence: evidence, Next: next})
				}
			})
		}),
	}
}
