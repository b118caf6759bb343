package rules

import (
	"maps"
	"slices"

	"ovs-offline/answer/check/rule"
	"ovs-offline/internal/ovsdb"
)

// matched is a northbound row with a match that applies to a datapath.
type matched struct {
	table string
	row   ovsdb.Row
	match string
}

// matches returns the rows with matches that ovn-northd makes logical flows of: the ACLs of switches and of
// port groups with ports, QoS rules, policy routes, and NAT rules.
func matches(d *rule.Deployment, n *rule.Northbound) ([]matched, error) {
	inUse := map[string]map[string]bool{"ACL": {}, "QoS": {}, "Logical_Router_Policy": {}, "NAT": {}}
	use := func(table string, uuids []string) {
		for _, uuid := range uuids {
			inUse[table][uuid] = true
		}
	}
	for _, s := range n.Switches {
		use("ACL", s.ACLs)
		use("QoS", s.QoS)
	}
	for _, r := range n.Routers {
		if !r.Disabled {
			use("Logical_Router_Policy", r.Policies)
			use("NAT", r.NAT)
		}
	}
	if err := d.NB.Each("Port_Group", func(row ovsdb.Row) {
		if len(row.UUIDs("ports")) > 0 {
			use("ACL", row.UUIDs("acls"))
		}
	}, "ports", "acls"); err != nil {
		return nil, err
	}
	var all []matched
	for _, table := range slices.Sorted(maps.Keys(inUse)) {
		if err := d.NB.Each(table, func(row ovsdb.Row) {
			if inUse[table][row.UUID] && (table != "NAT" || row.String("match") != "") {
				all = append(all, matched{table, row, row.String("match")})
			}
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
