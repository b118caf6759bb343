package ovn

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb"
)

// The external_ids in which the networking of OpenStack and Kubernetes keeps what users call a row.
const (
	// NeutronNetwork, NeutronRouter and NeutronPort are the names of a Logical_Switch, a Logical_Router and a
	// Logical_Switch_Port. Ports have the first two as well, with the names in OVN of the network and the router that
	// they belong to.
	NeutronNetwork = "neutron:network_name"
	NeutronRouter  = "neutron:router_name"
	NeutronPort    = "neutron:port_name"
	// NetworkID is the user-defined network of ovn-kubernetes that a row belongs to.
	NetworkID = "k8s.ovn.org/network"
	// ServiceKind and ServiceOwner are the kind and the name of the object that ovn-kubernetes made a load balancer from.
	ServiceKind  = "k8s.ovn.org/kind"
	ServiceOwner = "k8s.ovn.org/owner"
)

// Called returns the name that a user gave, with the name in OVN, or only the latter.
func Called(given, name string) string {
	if given == "" || given == name {
		return name
	}
	return given + " (" + name + ")"
}

// PortName returns what users call a port of a logical switch, by its name, its type, its external_ids and its addresses as in its row:
// NAMESPACE/POD, node/NODE for the port of a node itself, the name in Neutron, or else its own name.
func PortName(port, kind string, ids map[string]string, addresses []string) string {
	if pod := PodName(port, kind, ids, addresses); pod != "" {
		return pod
	}
	if node := nodeName(port, kind, ids); node != "" {
		return "node/" + node
	}
	return cmp.Or(ids[NeutronPort], port)
}

// IsNodePort reports whether a port of a logical switch connects a node of Kubernetes itself.
func IsNodePort(port, kind string, ids map[string]string) bool {
	return nodeName(port, kind, ids) != ""
}

// portTitle returns the name of a port of a logical switch that a user knows, with the one in OVN.
func portTitle(port, kind string, ids map[string]string, addresses []string) string {
	if pod := PodName(port, kind, ids, addresses); pod != "" {
		return "pod " + pod + " (port " + port + ")"
	}
	return "port " + Called(PortName(port, kind, ids, addresses), port)
}

// UserDefinedNetwork returns the name by which a user knows a user-defined network: NAMESPACE/NAME, or NAME
// for one of the cluster (go-controller/pkg/util, ParseNetworkName).
func UserDefinedNetwork(network string) string {
	if name, ok := strings.CutPrefix(network, "cluster_udn_"); ok {
		return name
	}
	if namespace, name, ok := strings.Cut(network, "_"); ok && !strings.Contains(name, "_") {
		return namespace + "/" + name
	}
	return network
}

// EndsAt reports whether what is behind ports of a type has the port's addresses: an instance, and no router or physical network.
func EndsAt(kind string) bool {
	return slices.Contains([]string{"", "localport", "virtual", "external", "remote"}, kind)
}

// isPodName matches NAMESPACE_NAME: neither name can have an underscore (RFC 1123).
var isPodName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?_[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

// PodName returns the name of the pod of ovn-kubernetes or kube-ovn that a port of a switch belongs to,
// NAMESPACE/NAME, by its name, its type, its external_ids and its addresses; "" for another port.
func PodName(port, kind string, ids map[string]string, addresses []string) string {
	switch namespace := ids["namespace"]; {
	case !EndsAt(kind):
	case strings.Count(ids["pod"], "/") == 1: // kube-ovn
		return ids["pod"]
	case namespace != "" && strings.Contains(port, namespace+"_"):
		// ovn-kubernetes: NAMESPACE_NAME, after the network's own prefix in networks other
		// than the default one.
		return namespace + "/" + port[strings.LastIndexByte(port, '_')+1:]
	case isPodName.MatchString(port) && slices.ContainsFunc(addresses, isOfPod):
		return strings.Replace(port, "_", "/", 1)
	}
	return ""
}

// isOfPod reports whether addresses begin with a MAC address that ovn-kubernetes made of an IPv4 address, or of a hash of an
// IPv6 address (go-controller/pkg/util, IPAddrToHWAddr).
func isOfPod(addresses string) bool { return strings.HasPrefix(strings.ToLower(addresses), "0a:58:") }

// ManagementPort begins the names of the ports by which ovn-kubernetes connects nodes.
const ManagementPort = "k8s-"

// nodeName returns the node of Kubernetes that a port of a switch connects, "" for another port.
func nodeName(port, kind string, ids map[string]string) string {
	if !EndsAt(kind) {
		return ""
	}
	if node, ok := strings.CutPrefix(port, "node-"); ok && ids["vendor"] == "kube-ovn" {
		return node
	}
	// In user-defined networks, the name of the network is before the node's, which has no underscore (RFC 1123).
	node, ok := strings.CutPrefix(port, ManagementPort)
	if !ok {
		return ""
	}
	return node[strings.LastIndexByte(node, '_')+1:]
}

// NamingColumns returns the columns that RowNames reads.
func NamingColumns() []string {
	return []string{"name", "type", "logical_port", "external_ids", "addresses", "mac", "ip_prefix", "external_ip", "logical_ip", "match", "ip",
		"address", "target", "hostname"}
}

// RowNames returns the names by which users know a row of a table, the best first: what they call it, its name in OVN or Open vSwitch, and
// further ids that Neutron or OVN-Kubernetes wrote into it. A row without them is known by what sets it apart for a reader, as the match
// of an ACL.
func RowNames(table string, row ovsdb.Row) []string {
	ids := row.Map("external_ids")
	names := []string{rowName(table, row, ids), row.String("name"), row.String("logical_port"), ids["name"], ids[NeutronPort], ids[NeutronNetwork], ids[NeutronRouter],
		ids["k8s.ovn.org/primary-id"], ids["k8s.ovn.org/id"], ids["iface-id"], PortName(ids["iface-id"], "", ids, []string{ids["attached_mac"]}), ids["neutron:security_group_rule_id"], row.String("hostname")}
	if table == "Load_Balancer" {
		if service := serviceOf(row.String("name"), ids); service != "" {
			names = append(names, "svc/"+service, service)
		}
	}
	if owner := Owner(ids); strings.HasPrefix(owner, "NetworkPolicy ") {
		names = append(names, owner, strings.TrimPrefix(owner, "NetworkPolicy "))
	}
	var known []string
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if len(known) > 0 {
		return known
	}
	return distinction(table, row)
}

// rowName returns what users call a row in place of its column "name", "" for nothing else.
func rowName(table string, row ovsdb.Row, ids map[string]string) string {
	switch table {
	case "Logical_Switch_Port", BindingTable:
		addresses := append(row.Strings("addresses"), row.Strings("mac")...)
		return PortName(row.String("name")+row.String("logical_port"), row.String("type"), ids, addresses)
	case "Logical_Switch":
		return ids[NeutronNetwork]
	case "Logical_Router":
		return ids[NeutronRouter]
	case DatapathTable:
		return ids["name2"]
	case ChassisTable:
		return row.String("hostname")
	case "Port_Group", "Address_Set":
		return ids["k8s.ovn.org/id"] // the column name is a hash of it
	}
	return ""
}

// distinction returns what tells a row without a name from others for a reader; none where nothing does.
func distinction(table string, row ovsdb.Row) []string {
	switch {
	case table == "Open_vSwitch" || table == "NB_Global" || table == "SB_Global":
		return []string{"."}
	case row.String("external_ip") != "":
		return []string{row.String("external_ip") + " " + row.String("logical_ip")}
	}
	for _, column := range []string{"ip_prefix", "match", "ip", "address", "target"} {
		if text := row.String(column); text != "" {
			return []string{text}
		}
	}
	return nil
}

// serviceOf returns NAMESPACE/NAME of the service of a load balancer, "" for none. Before ovn-kubernetes wrote it into external_ids, only
// the name had it: Service_NAMESPACE/NAME_TCP_...
func serviceOf(balancer string, ids map[string]string) string {
	if ids[ServiceKind] == "Service" {
		return ids[ServiceOwner]
	}
	if rest, ok := strings.CutPrefix(balancer, "Service_"); ok {
		if owner, _, found := strings.Cut(rest, "_"); found && strings.Count(owner, "/") == 1 {
			return owner
		}
	}
	return ""
}
