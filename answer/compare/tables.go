package compare

import (
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/rules"
)

// table describes how the rows of a table are compared. Rows of a table that is not listed are
// identified by the indexes of its schema, or else by name.
type table struct {
	kind string   // what users call a row; rules.Kind for ""
	key  []string // the columns by which the rows of one owner are told apart
	// ignored lists columns, and elements of maps as COLUMN:KEY or COLUMN:PREFIX*, that hold
	// numbers, times and what other columns hold too.
	ignored []string
	skipped bool // the rows are no objects of users
	// inline writes a row as an element of its owner's column.
	inline func(row ovsdb.Row) string
}

// bookkeeping lists what CMSs write into external_ids to keep the database in step with
// their own.
func bookkeeping() []string {
	return []string{"external_ids:neutron:revision_number", "external_ids:neutron:ovn-metadata-sb-cfg", "external_ids:neutron:liveness_check_at*",
		"external_ids:neutron_ovn_*", "external_ids:ovn-installed*"}
}

func northbound() map[string]table {
	return map[string]table{
		"NB_Global": {ignored: []string{"nb_cfg*", "sb_cfg*", "hv_cfg*", "connections",
			"options:max_tunid", "options:northd_internal_version", "options:northd_probe_interval_auto", "options:e2e_timestamp"}},
		"Logical_Switch":              {},
		"Logical_Switch_Port":         {},
		"Logical_Router":              {},
		"Logical_Router_Port":         {ignored: []string{"status"}},
		"ACL":                         {key: []string{"direction", "priority", "match", "tier"}},
		"NAT":                         {key: []string{"type", "external_ip", "logical_ip"}},
		"Load_Balancer":               {key: []string{"name", "protocol"}},
		"Load_Balancer_Group":         {},
		"Load_Balancer_Health_Check":  {key: []string{"vip"}},
		"Logical_Router_Static_Route": {key: []string{"ip_prefix", "nexthop", "policy", "route_table", "output_port"}},
		"Logical_Router_Policy":       {key: []string{"priority", "match"}},
		"QoS":                         {key: []string{"direction", "priority", "match"}},
		"DHCP_Options":                {key: []string{"cidr"}},
		"Port_Group":                  {},
		"Address_Set":                 {},
		"DNS":                         {key: []string{"external_ids", "records"}},
		"Static_MAC_Binding":          {},
		"BFD":                         {},
		"Meter":                       {},
		"Mirror":                      {},
		"Copp":                        {},
		"Forwarding_Group":            {},
		"HA_Chassis_Group":            {},
		"Chassis_Template_Var":        {},
		"Connection":                  {kind: "connection of OVN NB", ignored: []string{"is_connected", "status"}},
		"SSL":                         {},
		"Meter_Band":                  {inline: words("action", "rate", "burst_size")},
		"HA_Chassis":                  {inline: words("chassis_name", "priority")},
		"Gateway_Chassis":             {inline: words("chassis_name", "priority")},
	}
}

// southbound returns the tables of the southbound database. alone is set if there is no
// northbound database; otherwise only what that lacks is compared: where ports are bound, what was
// learned, and what is healthy.
func southbound(alone bool) map[string]table {
	skipped := map[string]table{}
	for _, name := range []string{"Logical_Flow", "Logical_DP_Group", "Datapath_Binding", "Multicast_Group", "Port_Binding", "Load_Balancer", "Address_Set",
		"Port_Group", "DNS", "Meter", "Meter_Band", "Mirror", "Chassis_Private", "SB_Global", "RBAC_Role", "RBAC_Permission", "DHCP_Options", "DHCPv6_Options",
		"Controller_Event", "IP_Multicast", "Gateway_Chassis", "HA_Chassis", "HA_Chassis_Group", "Static_MAC_Binding", "Chassis_Template_Var", "SSL", "BFD",
		"FDB", "ECMP_Nexthop", "ACL_ID", "Advertised_Route", "Learned_Route", "Advertised_MAC_Binding"} {
		skipped[name] = table{skipped: true}
	}
	skipped["Chassis"] = table{kind: "chassis", key: []string{"name"}, ignored: append([]string{"nb_cfg", "external_ids", "other_config:ovn-*-ts"}, bookkeeping()...)}
	skipped["Encap"] = table{inline: words("type", "ip", "options")}
	skipped["MAC_Binding"] = table{kind: "learned MAC address", key: []string{"logical_port", "ip"}, ignored: []string{"timestamp", "datapath"}}
	skipped["Service_Monitor"] = table{kind: "backend health", ignored: []string{"src_mac", "src_ip", "external_ids"}}
	skipped["IGMP_Group"] = table{kind: "multicast receivers", key: []string{"address"}, ignored: []string{"datapath", "chassis", "chassis_name", "ports"}}
	skipped["Connection"] = table{kind: "connection of OVN SB", ignored: []string{"is_connected", "status"}}
	if alone {
		skipped["Datapath_Binding"] = table{kind: "switch or router", key: []string{"external_ids"}, ignored: []string{"tunnel_key", "load_balancers"}}
		skipped["Port_Binding"] = table{kind: rules.KindPort, key: []string{"logical_port"}, ignored: []string{"tunnel_key", "datapath", "gateway_chassis", "ha_chassis_group"}}
		skipped["Load_Balancer"] = table{key: []string{"name", "protocol"}, ignored: []string{"datapaths", "datapath_group", "ls_datapath_group", "lr_datapath_group", "external_ids:lb_id"}}
		skipped["Address_Set"] = table{}
		skipped["Port_Group"] = table{ignored: []string{"name"}}
		skipped["DNS"] = table{key: []string{"external_ids", "records"}, ignored: []string{"datapaths", "external_ids:dns_id"}}
	}
	return skipped
}

func openvswitch() map[string]table {
	skipped := table{skipped: true}
	return map[string]table{
		"Open_vSwitch": {kind: "Open vSwitch settings", ignored: []string{"next_cfg", "cur_cfg", "statistics", "datapath_types", "iface_types", "datapaths",
			"db_version", "ovs_version", "external_ids:ovn-nb-cfg*"}},
		"Bridge": {kind: "bridge", ignored: []string{"datapath_id", "datapath_version", "external_ids:ct-zone-*", "external_ids:ovn-nb-cfg*",
			"external_ids:ovn-startup-ts", "status", "rstp_status"}},
		"Port":                      {kind: "OVS port", ignored: []string{"external_ids:ovn-chassis-id", "other_config:tag"}}, // written as options of the interface as well
		"Interface":                 {kind: "interface", ignored: append(bookkeeping(), "ofport", "ifindex", "lacp_current", "cfm_flap_count")},
		"Controller":                {kind: "controller", key: []string{"target"}},
		"Manager":                   {kind: "manager"},
		"Mirror":                    {kind: "mirror"},
		"QoS":                       {kind: "QoS", key: []string{"type", "external_ids", "other_config"}},
		"Queue":                     {inline: words("dscp", "other_config")},
		"NetFlow":                   {kind: "NetFlow settings", key: []string{"targets"}},
		"sFlow":                     {kind: "sFlow settings", key: []string{"targets"}},
		"IPFIX":                     {kind: "IPFIX settings", key: []string{"targets"}},
		"Flow_Sample_Collector_Set": {kind: "sample collector set"},
		"Flow_Table":                {kind: "flow table settings"},
		"SSL":                       {kind: "SSL settings"},
		"Datapath":                  skipped,
		"CT_Zone":                   skipped,
		"CT_Timeout_Policy":         skipped,
		"AutoAttach":                skipped,
	}
}

// words returns a function that writes columns of a row, one after the other.
func words(columns ...string) func(ovsdb.Row) string {
	return func(row ovsdb.Row) string {
		var list []string
		for _, column := range columns {
			for _, element := range (ovsdb.Names{}).Elements(row, column) {
				if element.Key != "" {
					element.Value = element.Key + "=" + element.Value
				}
				list = append(list, element.Value)
			}
		}
		return strings.Join(list, " ")
	}
}

// ignores reports whether a column, or an element of a map, is not compared.
func (t table) ignores(name string) bool {
	return slices.ContainsFunc(t.ignored, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// ranks are the kinds of findings in the order in which they are shown.
type ranks []string

func (r ranks) at(kind string) int {
	if i := slices.Index(r, kind); i >= 0 {
		return i
	}
	return len(r)
}

func kinds() ranks {
	return ranks{"node", "version", "chassis", rules.KindSwitch, rules.KindPort, rules.KindRouter, rules.KindRouterPort, rules.KindACL, rules.KindPortGroup,
		rules.KindAddressSet, rules.KindLoadBalancer, rules.KindHealthCheck, rules.KindNAT, rules.KindRoute, rules.KindPolicyRoute, rules.KindQoS,
		rules.KindDHCP, rules.KindDNS, rules.KindSettings, "backend health", "learned MAC address",
		"Open vSwitch settings", "bridge", "OVS port", "interface"}
}
