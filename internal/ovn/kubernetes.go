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

// PodName returns the name of the pod of ovn-kubernetes or kube-ovn that a port of a switch belongs to,
// NAMESPACE/NAME, by its name and external_ids; "" for another port.
func PodName(port string, ids map[string]string) string {
	switch namespace := ids["namespace"]; {
	case strings.Count(ids["pod"], "/") == 1: // kube-ovn
		return ids["pod"]
	case namespace != "" && strings.Contains(port, namespace+"_"):
		// ovn-kubernetes: NAMESPACE_NAME, after the network's own prefix in networks other
		// than the default one. The name of a pod has no underscore (RFC 1123).
		return namespace + "/" + port[strings.LastIndexByte(port, '_')+1:]
	}
	return ""
}
