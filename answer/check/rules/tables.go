package rules

import "ovs-offline/answer/rule"

// What rules read of the logical network, as package ovn reads it (ovn.Northbound and its like).

func switches() rule.Table { return rule.All("Logical_Switch", "_uuid", "name", "ports") }

func switchPorts() rule.Table { return rule.All("Logical_Switch_Port", ofSwitchPort()...) }

func ofSwitchPort() []string {
	return []string{"_uuid", "name", "type", "addresses", "dynamic_addresses", "port_security", "enabled", "options", "external_ids"}
}

func routers() rule.Table {
	return rule.All("Logical_Router", "_uuid", "name", "enabled", "ports", "options")
}

func routerPorts() rule.Table {
	return rule.All("Logical_Router_Port", "_uuid", "name", "mac", "networks", "peer", "gateway_chassis", "ha_chassis_group", "options", "external_ids")
}

// networkTables returns the switches and routers with their ports, and other tables.
func networkTables(others ...rule.Table) []rule.Table {
	return append([]rule.Table{switches(), switchPorts(), routers(), routerPorts()}, others...)
}

// translations returns the NAT rules of the routers.
func translations() []rule.Table {
	return []rule.Table{rule.All("Logical_Router", "nat"), rule.All("NAT", "_uuid", "type", "external_ip", "logical_ip", "external_mac", "logical_port", "match",
		"external_port_range", "allowed_ext_ips", "exempted_ext_ips")}
}

// balancers returns the load balancers, and who uses them.
func balancers(others ...rule.Table) []rule.Table {
	return append([]rule.Table{ofBalancer(rule.All), rule.All("Load_Balancer_Group", "_uuid", "load_balancer"),
		rule.All("Logical_Switch", "_uuid", "name", "load_balancer", "load_balancer_group"), rule.All("Logical_Router", "_uuid", "name", "load_balancer", "load_balancer_group")}, others...)
}

func ofBalancer(rows func(table string, columns ...string) rule.Table) rule.Table {
	return rows("Load_Balancer", "_uuid", "name", "protocol", "vips", "ip_port_mappings", "health_check", "options", "external_ids")
}

// gateways returns the chassis for which the gateway ports of routers are.
func gateways() []rule.Table {
	return []rule.Table{routers(), routerPorts(), rule.All("Gateway_Chassis", "_uuid", "name", "chassis_name"), rule.All("HA_Chassis", "_uuid", "chassis_name"),
		rule.All("HA_Chassis_Group", "_uuid", "ha_chassis")}
}

// matchedTables returns the rows with matches, and who uses them.
func matchedTables(others ...rule.Table) []rule.Table {
	return append([]rule.Table{rule.All("Logical_Switch", "acls", "qos_rules"), rule.All("Logical_Router", "enabled", "policies", "nat"), rule.All("Port_Group", "name", "ports", "acls"),
		rule.All("ACL", "_uuid", "match", "log", "meter"), rule.All("QoS", "_uuid", "match"), rule.All("Logical_Router_Policy", "_uuid", "match"), rule.All("NAT", "_uuid", "match")}, others...)
}

func chassis() rule.Table {
	return rule.All("Chassis", "_uuid", "name", "hostname", "encaps", "external_ids", "other_config")
}

func encaps() rule.Table { return rule.All("Encap", "_uuid", "type", "ip") }

func bindings() rule.Table {
	return rule.All("Port_Binding", "_uuid", "logical_port", "type", "chassis", "datapath", "tunnel_key", "up", "options", "external_ids")
}

func datapaths() rule.Table {
	return rule.All("Datapath_Binding", "_uuid", "tunnel_key", "external_ids", "nb_uuid")
}
