package names

import (
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
)

// role is what a user-defined network of ovn-kubernetes is to its pods: the network that they use, or
// one beside it.
type role string

// The roles, as ovn-kubernetes writes them (its go-controller/pkg/types/const.go, NetworkRoleExternalID).
const (
	noRole    role = "" // of the default network, or not known
	primary   role = "primary"
	secondary role = "secondary"
)

// The external_ids of ports and switches in user-defined networks.
const (
	udnRole = "k8s.ovn.org/role"
	udnNAD  = "k8s.ovn.org/nad"
)

// inNetwork notes the user-defined network of a pod's port.
func (e *Endpoint) inNetwork(ids map[string]string) {
	network := ids[ovn.NetworkID]
	if network == "" {
		return
	}
	e.Network, e.networks = ovn.UserDefinedNetwork(network), []string{network, ids[udnNAD]}
}

// inPrimary returns the ports that a user means by the name of a pod or a node. The name of a node means
// its port in the default network. If the pod has a port in a primary
// user-defined network, the user means that one: only the cluster itself uses the one in the default
// network. Else the user means the port in the default network, and not those in secondary networks.
func inPrimary(found []Endpoint) []Endpoint {
	return slices.DeleteFunc(slices.Clone(found), func(e Endpoint) bool {
		if e.Kind == NodePort && e.role != noRole && slices.ContainsFunc(found, func(other Endpoint) bool { return other.Kind == NodePort && other.role == noRole }) {
			return true
		}
		return e.Kind == Pod && slices.ContainsFunc(found, func(other Endpoint) bool {
			return other.Kind == Pod && other.Name == e.Name &&
				(other.role == primary && e.role != primary || other.role == noRole && other.Network == "" && e.role == secondary)
		})
	})
}

// IsSecondary reports whether the endpoint is a pod's port in a secondary user-defined network, where
// ovn-kubernetes gives pods no gateway.
func (e Endpoint) IsSecondary() bool { return e.Kind == Pod && e.role == secondary }

// isInternal reports whether only ovn-kubernetes itself uses a port.
func (n *Names) isInternal(e Endpoint) bool {
	switch e.Kind {
	case NodePort:
		return e.role != noRole
	case Pod:
		return e.role == noRole && e.Network == "" && slices.ContainsFunc(n.byKey[strings.ToLower(e.Name)], func(at int) bool {
			other := n.endpoints[at]
			return other.Kind == Pod && other.Name == e.Name && other.role == primary
		})
	}
	return false
}
