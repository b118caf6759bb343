package rules

import (
	"maps"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// matched is a northbound row with a match that applies to a datapath.
type matched struct {
	table, uuid string
	match       string
	log         bool
	meter       string
	unnamed     bool // the UUID is not known
}

// eachMatched calls use for the rows with matches that ovn-northd makes logical flows of: the ACLs of
// switches and of port groups with ports, QoS rules, policy routes, and NAT rules.
func eachMatched(d *rule.Deployment, n *ovn.Northbound, use func(matched)) error {
	inUse := map[string]map[string]bool{"ACL": {}, "QoS": {}, "Logical_Router_Policy": {}, "NAT": {}}
	add := func(table string, uuids []string) {
		for _, uuid := range uuids {
			inUse[table][uuid] = true
		}
	}
	for _, s := range n.Switches {
		add("ACL", s.ACLs)
		add("QoS", s.QoS)
	}
	for _, r := range n.Routers {
		if !r.Disabled {
			add("Logical_Router_Policy", r.Policies)
			add("NAT", r.NAT)
		}
	}
	if err := d.NB.Each("Port_Group", func(row ovsdb.Row) {
		if len(row.UUIDs("ports")) > 0 {
			add("ACL", row.UUIDs("acls"))
		}
	}, "ports", "acls"); err != nil {
		return err
	}
	unknown := d.NB.Lacks("Logical_Switch", true, "acls", "qos_rules")+d.NB.Lacks("Logical_Router", true, "enabled", "policies", "nat")+d.NB.Lacks("Port_Group", true, "ports", "acls") != ""
	for _, table := range slices.Sorted(maps.Keys(inUse)) {
		if d.NB.Lacks(table, false, "match") != "" {
			continue // the rules that need it do not run
		}
		known, _ := d.NB.Known(table)
		if err := d.NB.Each(table, func(row ovsdb.Row) {
			if (unknown || known.Unnamed || inUse[table][row.UUID]) && (table != "NAT" || row.String("match") != "") {
				use(matched{table, row.UUID, row.String("match"), row.Bool("log"), row.String("meter"), known.Unnamed})
			}
		}, "match", "log", "meter"); err != nil {
			return err
		}
	}
	return nil
}
