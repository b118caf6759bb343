// Package netns has the network namespaces of a node as they were recorded: devices, addresses, routes, rules,
// neighbours, the rules of netfilter, and connections. It reads a workdir.
package netns

import (
	"ovs-offline/internal/iproute"
)

// Own is the name of the node's own network namespace, in which its daemons run.
const Own = ""

// Namespace is a network namespace of a node.
type Namespace struct {
	Name       string // of ip-netns(8); Own for the node's own
	Links      []iproute.Link
	Routes     []iproute.Route // of all tables and families
	Rules      []iproute.Rule  // of both families
	Neighbours []iproute.Neighbour
	Sysctls    map[string]string // the settings below net. that decide about forwarding, by name

	// The paths of recorded outputs, each "" if it was not recorded: iptables-save, ip6tables-save,
	// nft list ruleset, ipset save, and conntrack -L -o extended.
	Filters, Filters6, Nftables, Sets, Conntrack string
}
