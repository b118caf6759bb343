package ovn

import (
	"cmp"
	"fmt"
	"strings"
)

// The external_ids in which ovn-kubernetes writes the kind and the name of the object that it made a row from.
const (
	OwnerType = "k8s.ovn.org/owner-type"
	OwnerName = "k8s.ovn.org/name"
)

// Owner names the object of Kubernetes that ovn-kubernetes made a row from ("" for none), by
// the owner types of its libovsdb/ops/db_object_types.go.
func Owner(ids map[string]string) string {
	name, direction := ids[OwnerName], strings.ToLower(ids["direction"])
	if direction == "" {
		direction = strings.ToLower(ids["policy-direction"])
	}
	switch kind := ids[OwnerType]; kind {
	case "":
		return ownedBefore(ids)
	case "NetworkPolicy": // NAMESPACE:NAME
		return "NetworkPolicy " + strings.Replace(name, ":", "/", 1)
	case "NetpolNamespace":
		return strings.TrimSpace(fmt.Sprintf("NetworkPolicies of namespace %s: %s %s", name, cmp.Or(netpolTypes()[ids["type"]], "default deny"), direction))
	case "NetpolDefault": // "allow-hairpinning"
		return strings.TrimSpace("NetworkPolicies: " + strings.ReplaceAll(name, "-", " ") + " " + direction)
	case "NetpolNode": // the name of its switch: a user-defined network's has the network before the node
		return "NetworkPolicies: traffic from node " + name[strings.LastIndexByte(name, '_')+1:]
	case "UDNIsolation":
		return "isolation of user-defined networks: " + name
	case "EgressFirewall":
		return "EgressFirewall of namespace " + name
	case "MulticastNS":
		return "multicast of namespace " + name
	case "MulticastCluster":
		return "multicast of the cluster"
	case OwnerEgressIP:
		if strings.HasPrefix(name, "EIP-No-Reroute-") { // of all EgressIPs
			return "traffic that takes no EgressIP: " + name
		}
		if egressIP, pod, ok := strings.Cut(name, "_"); ok { // NAME_NAMESPACE/POD
			return fmt.Sprintf("%s %s for %s", kind, egressIP, pod)
		}
		fallthrough
	default:
		return strings.TrimSpace(kind + " " + strings.Replace(name, ":", "/", 1))
	}
}

// OwnerEgressIP is the owner type of what an EgressIP needs.
const OwnerEgressIP = "EgressIP"

// netpolTypes returns words for the ACLs that ovn-kubernetes adds to a namespace with NetworkPolicies, by
// their type (pkg/ovn/base_network_controller_policy.go).
func netpolTypes() map[string]string {
	return map[string]string{"defaultDeny": "default deny", "arpAllow": "ARP and ND are allowed,", "icmpAllow": "ICMP is allowed,"}
}

// ownedBefore names the object of Kubernetes by the external_ids that ovn-kubernetes wrote
// before it had owner types.
func ownedBefore(ids map[string]string) string {
	if ids["policy"] != "" && ids["namespace"] != "" {
		return "NetworkPolicy " + ids["namespace"] + "/" + ids["policy"]
	}
	if ids["egressFirewall"] != "" {
		return "EgressFirewall of namespace " + ids["egressFirewall"]
	}
	return ""
}
