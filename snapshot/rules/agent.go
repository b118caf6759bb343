package rules

import (
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/node"
)

// AgentTable names a table of a bridge of neutron's Open vSwitch agent (ML2/OVS), by the
// constants of its plugins/ml2/drivers/openvswitch/agent/common/constants.py; "" for a
// table that the agent has no name for. kind is the kind of the bridge: AgentIntegration,
// AgentTunnel or AgentPhysical.
func AgentTable(kind string, table int) string {
	return map[string]map[int]string{
		AgentIntegration: {
			0: "local switching", 1: "DVR: to the source MAC address", 2: "DVR: to the source MAC address, VLAN", 23: "canary",
			24: "ARP spoofing", 25: "MAC spoofing", 60: "transient", 71: "security groups: base egress", 72: "security groups: egress rules",
			73: "security groups: accept or ingress", 77: "DHCP for IPv4", 78: "DHCP for IPv6", 81: "security groups: base ingress", 82: "security groups: ingress rules",
			91: "security groups: accepted egress", 92: "security groups: accepted ingress", 93: "security groups: dropped",
			94: "security groups: accepted egress, NORMAL",
		},
		AgentTunnel: {
			1: "DVR", 2: "from the integration bridge", 3: "from GRE", 4: "from VXLAN", 6: "from Geneve", 9: "DVR: no learning",
			10: "learning", 20: "unicast to tunnels", 21: "ARP responder", 22: "flood to tunnels",
		},
		AgentPhysical: {1: "DVR, VLAN", 2: "local VLAN translation", 3: "DVR: no learning, VLAN"},
	}[kind][table]
}

// The kinds of bridges of neutron's Open vSwitch agent.
const (
	AgentIntegration = "integration"
	AgentTunnel      = "tunnel"
	AgentPhysical    = "physical"
)

// AgentReason returns the reason for a drop on the agent's integration bridge, from the
// tables that the packet went through there. The last but one sends a packet to the table
// for dropped traffic: the base egress table if its addresses are not the port's.
func AgentReason(tables ...int) Reason {
	last, before := 0, 0
	for _, table := range tables {
		last, before = table, last
	}
	if last == 93 {
		last = before
	}
	switch {
	case last == 24 || last == 25 || last == 71:
		return PortSecurity
	case last == 72 || last == 73 || last == 81 || last == 82 || last == 93:
		return ACL
	}
	return Explicit
}

// AgentBridges returns the kinds of the bridges of a node of neutron's Open vSwitch agent,
// by their names, from its OVS database; none for another node. The integration bridge has
// the ports into whose rows the agent wrote their networks; the others have patch ports to
// it. Bridges of trunks are left out: they have no tables of their own.
func AgentBridges(conf *file.Index) (map[string]string, error) {
	all, err := node.Bridges(conf)
	if err != nil {
		return nil, err
	}
	kinds, integration := map[string]string{}, map[string]bool{}
	for _, b := range all {
		if !slices.ContainsFunc(b.Ports, func(p *node.Port) bool { return p.Config["net_uuid"] != "" }) {
			continue
		}
		kinds[b.Name] = AgentIntegration
		for i := range node.Interfaces(b) {
			integration[i.Name] = true
		}
	}
	for _, b := range all {
		if kinds[b.Name] == "" && !strings.HasPrefix(b.Name, "tbr-") {
			if kind := agentBridge(b, integration); kind != "" {
				kinds[b.Name] = kind
			}
		}
	}
	return kinds, nil
}

// agentBridge returns the kind of a bridge with patch ports to the integration bridge, "" for
// another bridge.
func agentBridge(b *node.Bridge, integration map[string]bool) string {
	joined, tunnels := false, false
	for i := range node.Interfaces(b) {
		joined = joined || i.Type == "patch" && integration[i.Options["peer"]]
		tunnels = tunnels || node.IsTunnel(i.Type)
	}
	switch {
	case joined && tunnels:
		return AgentTunnel
	case joined:
		return AgentPhysical
	}
	return ""
}
