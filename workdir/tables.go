package workdir

import "strings"

// TableName returns the name of a table of a database as its schema spells it. People spell names in any case, with dashes, and
// leave out the end where one table begins so (ovs-vsctl(8), "Database Commands"). A table that is not known keeps its spelling.
func TableName(kind Kind, spelled string) string {
	plain := strings.ReplaceAll(spelled, "-", "_")
	var begin []string
	for name := range strings.FieldsSeq(tables(kind)) {
		if strings.EqualFold(name, plain) {
			return name
		}
		if len(name) > len(plain) && strings.EqualFold(name[:len(plain)], plain) {
			begin = append(begin, name)
		}
	}
	if len(begin) == 1 {
		return begin[0]
	}
	return plain
}

// tables returns the names of the tables of a schema: those of Open vSwitch 3.6 and OVN 25.09, and of earlier releases.
func tables(kind Kind) string {
	switch kind {
	case OVS:
		return strings.Join(ListedTables(), " ") + " AutoAttach SSL CT_Zone CT_Timeout_Policy"
	case NB:
		return "NB_Global Logical_Switch Logical_Switch_Port Forwarding_Group Address_Set Port_Group Load_Balancer Load_Balancer_Group Load_Balancer_Health_Check " +
			"ACL Logical_Router QoS Mirror Mirror_Rule Meter Meter_Band Logical_Router_Port Logical_Router_Static_Route Logical_Router_Policy NAT DHCP_Options " +
			"DHCP_Relay Connection DNS SSL Gateway_Chassis HA_Chassis HA_Chassis_Group BFD Static_MAC_Binding Chassis_Template_Var Copp Sample Sample_Collector Sampling_App"
	case SB:
		return "SB_Global Chassis Chassis_Private Encap Address_Set Port_Group Logical_Flow Logical_DP_Group Multicast_Group Mirror Meter Meter_Band Datapath_Binding " +
			"Port_Binding MAC_Binding DHCP_Options DHCPv6_Options Connection SSL DNS RBAC_Role RBAC_Permission Gateway_Chassis HA_Chassis HA_Chassis_Group " +
			"Controller_Event IP_Multicast IGMP_Group Service_Monitor Load_Balancer BFD FDB Static_MAC_Binding Chassis_Template_Var ECMP_Nexthop Learned_Route " +
			"Advertised_Route Advertised_MAC_Binding"
	}
	return ""
}
