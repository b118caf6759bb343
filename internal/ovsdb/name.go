package ovsdb

import "cmp"

// NamingColumns returns the columns that RecordName reads.
func NamingColumns() []string {
	return []string{"name", "logical_port", "external_ids", "ip_prefix", "external_ip", "logical_ip", "match", "ip", "address", "target"}
}

// RecordName returns the name by which users know a row of a table: its column "name" or,
// for a port binding, "logical_port"; else the id that OVN, Neutron or OVN-Kubernetes wrote
// into it; else what sets the row apart for a reader. It is "" for a row that has none.
func (r Row) RecordName(table string) string {
	ids := r.Map("external_ids")
	name := cmp.Or(r.String("name"), r.String("logical_port"), ids["name"], ids["k8s.ovn.org/primary-id"], ids["k8s.ovn.org/id"],
		ids["neutron:port_name"], ids["neutron:network_name"], ids["neutron:security_group_rule_id"])
	switch {
	case name != "":
		return name
	case table == "Open_vSwitch" || table == "NB_Global" || table == "SB_Global":
		return "."
	case r.String("external_ip") != "":
		return r.String("external_ip") + " " + r.String("logical_ip")
	}
	return cmp.Or(r.String("ip_prefix"), r.String("match"), r.String("ip"), r.String("address"), r.String("target"))
}
