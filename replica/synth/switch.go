package synth

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// The names and numbers that OVN and Open vSwitch use by default.
const (
	integration = ovn.Integration // the southbound database names none
	localPort   = 65534           // OFPP_LOCAL of OpenFlow 1.0
)

// node is the Open vSwitch of a chassis before ovn-controller adds tunnels and patch ports.
type node struct {
	ovn.Chassis
	bridges []bridge
	assumed []string
	lost    []string // what is not in the switch, although the database has it
}

// bridge is a bridge with its ports in the order of their numbers, without the local one.
type bridge struct {
	name       string
	failMode   string
	interfaces []iface
}

// iface is an interface, and the port of the same name.
type iface struct {
	name, kind string
	ids        map[string]string
}

// buildSwitch makes up the switch of a chassis.
func (s *Southbound) buildSwitch(chassis ovn.Chassis) *node {
	node := &node{Chassis: chassis}
	providers := node.providerBridges()
	names := newNames(node, s, providers)
	node.assume("the integration bridge is called %s", integration)
	node.bridges = []bridge{{name: integration, failMode: "secure", interfaces: node.logicalPorts(s, names)}}
	for _, name := range providers {
		node.addProviderBridge(s, name, names.uplink(name))
	}
	node.checkEncaps()
	node.assume("the datapath can do what the datapath of Linux 6.1 can")
	if kind := chassis.Config["datapath-type"]; kind != "" && kind != datapathType {
		node.assume("the datapath is the kernel's: the chassis has the type %q, whose tunnels need the routes of the node", kind)
	}
	return node
}

func (n *node) assume(format string, args ...any) {
	n.assumed = append(n.assumed, fmt.Sprintf(format, args...))
}

func (n *node) lose(format string, args ...any) {
	n.lost = append(n.lost, n.Title()+": "+fmt.Sprintf(format, args...))
}

// logicalPorts returns the interfaces of the logical ports that are bound to the chassis.
func (n *node) logicalPorts(southbound *Southbound, names *names) []iface {
	var all []iface
	for _, binding := range southbound.bindings {
		if !n.plugs(southbound, binding) {
			continue
		}
		name, kind := names.interfaceOf(binding)
		all = append(all, iface{name: name, kind: kind, ids: interfaceIDs(binding)})
	}
	names.assume()
	n.assume("OpenFlow port numbers: the southbound database has none, so the %d logical ports of the node are numbered from 1 in the order of their names, and tunnels and patch ports after them", len(all))
	n.assume("numbers of conntrack zones: the southbound database has none, so they are what ovn-controller chose here")
	n.assume("connections: the southbound database has none, so the first packet of each is the first that the node sees")
	n.assume("the order in which flows were installed: where two flows of one priority match a packet, it decides which one counts")
	n.assume("MTUs and link states of interfaces: no packet is too large, and all links are up")
	return all
}

// plugs reports whether an interface of the node belongs to a logical port. Ports of
// routers and gateways have none; a container's or trunk's port uses its parent's.
func (n *node) plugs(southbound *Southbound, b ovn.Binding) bool {
	here := b.On(n.UUID)
	switch {
	case b.Type == "localport":
		return southbound.hasPortOn(n.UUID, b.Datapath)
	case b.Type != "" || !here:
		return false
	case b.Parent == "":
		return true
	}
	if !slices.ContainsFunc(southbound.bindings, func(parent ovn.Binding) bool { return parent.Port == b.Parent && parent.On(n.UUID) }) {
		n.lose("port %q has the parent %q, which is not bound to the chassis", b.Port, b.Parent)
	}
	return false
}

// hasPortOn reports whether a port of a datapath is bound to a chassis.
func (s *Southbound) hasPortOn(chassis, datapath string) bool {
	return slices.ContainsFunc(s.bindings, func(b ovn.Binding) bool { return b.Type == "" && b.Datapath == datapath && b.On(chassis) })
}

// interfaceIDs returns the external_ids by which ovn-controller finds the interface of a
// logical port, and those that show its address and its instance.
func interfaceIDs(b ovn.Binding) map[string]string {
	ids := map[string]string{"iface-id": b.Port}
	for _, addresses := range b.Addresses {
		if words := strings.Fields(addresses); ids["attached-mac"] == "" && len(words) > 0 && strings.Count(words[0], ":") == 5 {
			ids["attached-mac"] = words[0]
		}
	}
	for key, value := range map[string]string{"iface-id-ver": b.Options["iface-id-ver"], "vm-id": b.IDs["neutron:device_id"]} {
		if value != "" {
			ids[key] = value
		}
	}
	return ids
}

// providerBridges returns the names of the bridges of ovn-bridge-mappings.
func (n *node) providerBridges() []string {
	var names []string
	for _, name := range n.identity().Mappings() {
		if name == "" || name == integration || slices.Contains(names, name) {
			continue
		}
		if strings.ContainsAny(name, "/\x00") {
			n.lose("%q in ovn-bridge-mappings can't be the name of a bridge", name)
			continue
		}
		names = append(names, name)
	}
	return names
}

// addProviderBridge adds a bridge with one physical port.
func (n *node) addProviderBridge(southbound *Southbound, name, uplink string) {
	n.bridges = append(n.bridges, bridge{name: name, failMode: "standalone", interfaces: []iface{{name: uplink}}})
	n.assume("bridge %s: its flows, its other ports and the addresses that it learned are not in the southbound database; it has one physical port, called %s here, and forwards as NORMAL: a packet to an unknown address floods", name, uplink)
	if southbound.isKubernetes() {
		n.assume("bridge %s: OVN-Kubernetes has flows of its own there, for services and for traffic of the host: they are missing", name)
	}
}

// isKubernetes reports whether OVN-Kubernetes wrote the database: each node has a
// management port.
func (s *Southbound) isKubernetes() bool {
	return slices.ContainsFunc(s.bindings, func(b ovn.Binding) bool {
		return slices.ContainsFunc(s.chassis, func(chassis ovn.Chassis) bool { return b.Port == managementPort(chassis) && b.Port != "" })
	})
}

// managementPort returns the name of the logical port of a node itself (types.K8sPrefix of
// OVN-Kubernetes); "" for a chassis without a host name.
func managementPort(chassis ovn.Chassis) string {
	if chassis.Hostname == "" {
		return ""
	}
	return "k8s-" + chassis.Hostname
}

// checkEncaps reports a chassis without tunnels.
func (n *node) checkEncaps() {
	if len(n.Encaps) == 0 {
		n.lose("the chassis has no row in the table Encap: it has no tunnels")
	}
}

// titles lists the titles of chassis.
func titles(all []ovn.Chassis) string {
	var names []string
	for _, chassis := range all {
		names = append(names, chassis.Title())
	}
	return phrase.FirstNames(names)
}
