package rules

import (
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot/node"
)

// withTunnels calls use with the chassis of a node, all chassis, and the tunnels of the node. It does
// nothing for a node without a chassis.
func withTunnels(n *rule.Node, use func(own ovn.Chassis, all []ovn.Chassis, tunnels []*node.Interface)) error {
	own, isChassis, err := n.ChassisOf()
	if err != nil || !isChassis {
		return err
	}
	all, err := n.Deployment.Chassis()
	if err != nil {
		return err
	}
	tunnels, err := ovnTunnels(n)
	if err == nil {
		use(own, all, tunnels)
	}
	return err
}

// ovnTunnels returns the tunnels of the integration bridge of a node.
func ovnTunnels(n *rule.Node) ([]*node.Interface, error) {
	bridges, err := n.Bridges()
	if err != nil {
		return nil, err
	}
	settings, err := n.Settings()
	var tunnels []*node.Interface
	for iface := range node.Interfaces(bridges...) {
		if remote := iface.Options["remote_ip"]; iface.Port.Bridge.Name == settings.Bridge() && node.IsTunnel(iface.Type) && remote != "" && remote != "flow" {
			tunnels = append(tunnels, iface)
		}
	}
	return tunnels, err
}

// reaches reports whether one of the tunnels leads to an address of a chassis.
func reaches(tunnels []*node.Interface, c ovn.Chassis) bool {
	return slices.ContainsFunc(tunnels, func(t *node.Interface) bool {
		return slices.ContainsFunc(c.Encaps, func(e ovn.Encap) bool { return e.IP == t.Options["remote_ip"] })
	})
}

// sameAddress reports whether two chassis share an address: there is no tunnel between them.
func sameAddress(a, b ovn.Chassis) bool {
	return slices.ContainsFunc(a.Encaps, func(e ovn.Encap) bool {
		return slices.ContainsFunc(b.Encaps, func(other ovn.Encap) bool { return other.IP == e.IP })
	})
}

func addressesOf(c ovn.Chassis) string {
	var texts []string
	for _, encap := range c.Encaps {
		texts = append(texts, encap.Type+" "+encap.IP)
	}
	return strings.Join(texts, ", ")
}
