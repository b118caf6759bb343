package rules

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
)

// offset is what ovn-northd adds to the priority of an ACL (northd/northd.c, OVN_ACL_PRI_OFFSET).
const offset = 1000

// aclKey is what the logical flows of an ACL show of it, beside its match and its tier.
type aclKey struct {
	direction string
	priority  int
}

// knownACL is an ACL as its logical flows show it.
type knownACL struct {
	uuid, match string
	tier        int
	switches    []string // the UUIDs of the switches that have it themselves
}

func (n *Northbound) readACLs() map[aclKey][]knownACL {
	acls, switches := map[aclKey][]knownACL{}, map[string][]string{}
	_ = ovn.EachSwitch(n.nb, func(s *ovn.Switch) { // a switch that can't be read has none
		for _, acl := range s.ACLs {
			switches[acl] = append(switches[acl], s.UUID)
		}
	})
	for row, err := range n.nb.Rows("ACL", "direction", "priority", "match", "tier") {
		if err != nil {
			break // the ACLs that can't be read are for no flow
		}
		key := aclKey{row.String("direction"), number(row, "priority")}
		acls[key] = append(acls[key], knownACL{row.UUID, row.String("match"), number(row, "tier"), switches[row.UUID]})
	}
	return acls
}

// replaced returns the ACL of a logical flow whose hint names no row. ovn-northd keeps a logical flow,
// and its hint, when an ACL takes the place of an equal one, and kube-ovn replaces the ACLs of subnets
// in this way. It returns the zero Cause if none, or several with other words, are for the flow.
func (n *Northbound) replaced(rule Rule) (Cause, error) {
	if !IsAbout(rule.Stage, "ACL") {
		return Cause{}, nil
	}
	direction := map[string]string{"ingress": "from-lport", "egress": "to-lport"}[rule.Pipeline]
	var found Cause
	for _, acl := range n.acls()[aclKey{direction, rule.Priority - offset}] {
		// An ACL of a port group names it.
		if !acl.isFor(rule) || !slices.Contains(acl.switches, rule.Datapath.Northbound) && !strings.Contains(acl.match, "@") {
			continue
		}
		row, ok, err := n.nb.Row("ACL", acl.uuid)
		if err != nil || !ok {
			return Cause{}, err
		}
		cause := n.explain("ACL", row, rule)
		if found.Words != "" && found.Words != cause.Words {
			return Cause{}, nil
		}
		found = cause
	}
	return found, nil
}

// isFor reports whether a logical flow has the match and the tier of the ACL. The tier is in the
// register reg8[30..31].
func (a knownACL) isFor(rule Rule) bool {
	if a.tier > 0 && !strings.Contains(rule.Match, fmt.Sprintf("[30..31] == %d", a.tier)) {
		return false
	}
	return strings.HasSuffix(rule.Match, "("+a.match+")") || rule.Match == a.match
}
