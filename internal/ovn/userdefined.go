package ovn

import "strings"

// NetworkID is the external_id with the name of the user-defined network of ovn-kubernetes that a row
// belongs to.
const NetworkID = "k8s.ovn.org/network"

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
