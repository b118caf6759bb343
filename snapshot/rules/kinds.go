package rules

import "ovs-offline/pkg/ovsdb"

// The kinds of northbound rows, as their users call them.
const (
	KindSettings          = "OVN settings"
	KindSwitch            = "switch"
	KindPort              = "port"
	KindRouter            = "router"
	KindRouterPort        = "router port"
	KindACL               = "ACL"
	KindNAT               = "NAT"
	KindLoadBalancer      = "load balancer"
	KindLoadBalancerGroup = "load balancer group"
	KindHealthCheck       = "health check"
	KindRoute             = "route"
	KindPolicyRoute       = "policy route"
	KindQoS               = "QoS rule"
	KindDHCP              = "DHCP options"
	KindPortGroup         = "port group"
	KindAddressSet        = "address set"
	KindDNS               = "DNS records"
	KindStaticMAC         = "static MAC binding"
	KindMeter             = "meter"
	KindProtection        = "control plane protection"
)

// Kind returns what users call a row of a northbound table: the name of the table in words where
// they have no other name.
func Kind(table string) string {
	switch table {
	case "NB_Global":
		return KindSettings
	case "Logical_Switch":
		return KindSwitch
	case "Logical_Switch_Port":
		return KindPort
	case "Logical_Router":
		return KindRouter
	case "Logical_Router_Port":
		return KindRouterPort
	case "Load_Balancer_Health_Check":
		return KindHealthCheck
	case "Logical_Router_Static_Route":
		return KindRoute
	case "Logical_Router_Policy":
		return KindPolicyRoute
	case "ACL", "NAT":
		return table
	case "QoS":
		return KindQoS
	case "DHCP_Options":
		return KindDHCP
	case "DNS":
		return KindDNS
	case "Static_MAC_Binding":
		return KindStaticMAC
	case "BFD":
		return "BFD session"
	case "Copp":
		return KindProtection
	case "HA_Chassis_Group":
		return "HA chassis group"
	case "Chassis_Template_Var":
		return "template variables"
	case "SSL":
		return "SSL settings"
	}
	return ovsdb.TableWords(table)
}
