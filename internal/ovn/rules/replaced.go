package rules

import (
	"fmt"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// offset is what ovn-northd adds to the priority of an ACL (northd/northd.c, OVN_ACL_PRI_OFFSET).
const offset = 1000

// replaced returns the ACL that a logical flow is for whose hint names no row: ovn-northd keeps the
// logical flow, and its hint, when an ACL takes the place of an equal one. kube-ovn so replaces the
// ACLs of a subnet. It returns the zero Cause if none, or several with other words, are for the flow.
func (n *Northbound) replaced(rule Rule) (Cause, error) {
	if !IsAbout(rule.Stage, "ACL") || rule.Priority <= offset {
		return Cause{}, nil
	}
	own := n.aclsOf(rule)
	found := Cause{}
	for row, err := range n.nb.Rows("ACL") {
		if err != nil {
			return Cause{}, err
		}
		if !isFor(row, rule) || !own[row.UUID] && !strings.Contains(row.String("match"), "@") {
			continue
		}
		cause := n.explain("ACL", row, rule)
		if found.Words != "" && found.Words != cause.Words {
			return Cause{}, nil
		}
		found = cause
	}
	return found, nil
}

// isFor reports whether a logical flow has the priority, the direction, the tier and the match of an
// ACL. The tier is in the register reg8[30..31].
func isFor(acl ovsdb.Row, rule Rule) bool {
	direction := map[string]string{"ingress": "from-lport", "egress": "to-lport"}[rule.Pipeline]
	if number(acl, "priority")+offset != rule.Priority || acl.String("direction") != direction {
		return false
	}
	if tier := number(acl, "tier"); tier > 0 && !strings.Contains(rule.Match, fmt.Sprintf("[30..31] == %d", tier)) {
		return false
	}
	return strings.HasSuffix(rule.Match, "("+acl.String("match")+")") || rule.Match == acl.String("match")
}

// aclsOf returns the UUIDs of the ACLs that the switch of a logical flow has itself.
func (n *Northbound) aclsOf(rule Rule) map[string]bool {
	own := map[string]bool{}
	row, ok, err := n.nb.Row("Logical_Switch", rule.Datapath.Northbound, "acls")
	if rule.Datapath.Northbound == "" || !ok || err != nil {
		return own
	}
	for _, id := range row.UUIDs("acls") {
		own[id] = true
	}
	return own
}
