package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/node"
)

// tunnelMissing finds the chassis to which a node has no tunnel, and the tunnels to addresses that
// no chassis has.
func tunnelMissing() rule.Rule {
	return rule.Rule{
		Name: "tunnel-missing", Severity: rule.Error,
		Follows: "packets of logical networks from this node to the other one are lost",
		Sources: []string{"ovn-sb(5), Encap", "chassis_tunnel_add in controller/encaps.c of OVN"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			own, isChassis, err := n.ChassisOf()
			if err != nil || !isChassis {
				return err
			}
			all, err := n.Deployment.Chassis()
			if err != nil {
				return err
			}
			tunnels, err := ovnTunnels(n)
			if err != nil || len(tunnels) == 0 && len(all) < 2 {
				return err
			}
			settings, _ := n.Settings()
			for _, c := range all {
				if c.UUID != own.UUID && len(c.Encaps) > 0 && settings.Get("ovn-transport-zones") == "" && !sameAddress(own, c) && !reaches(tunnels, c) {
					found(rule.Finding{What: fmt.Sprintf("there is no tunnel to chassis %s (%s)", c.Title(), addressesOf(c)),
						Evidence: []string{"Encap of chassis " + c.Name + " in the southbound database", "Interface in conf.db: options:remote_ip"},
						Next:     []string{"ovs-offline timeline --program ovn-controller", "on the node: ovs-vsctl show"}})
				}
			}
			for _, tunnel := range tunnels {
				remote := tunnel.Options["remote_ip"]
				if !slices.ContainsFunc(all, func(c rule.Chassis) bool { return reaches([]*node.Interface{tunnel}, c) }) {
					found(rule.Finding{Rule: "tunnel-to-nowhere", Severity: rule.Warning, What: fmt.Sprintf("the tunnel %s leads to %s, which is the address of no chassis", tunnel.Name, remote),
						Follows:  "copies of broadcasts may be sent to a machine that is gone",
						Evidence: []string{"Interface " + tunnel.Name + " in conf.db: options:remote_ip"},
						Next:     []string{"ovs-offline history --table Chassis"}})
				}
			}
			return nil
		},
	}
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
func reaches(tunnels []*node.Interface, c rule.Chassis) bool {
	return slices.ContainsFunc(tunnels, func(t *node.Interface) bool {
		return slices.ContainsFunc(c.Encaps, func(e rule.Encap) bool { return e.IP == t.Options["remote_ip"] })
	})
}

// sameAddress reports whether two chassis share an address: there is no tunnel between them.
func sameAddress(a, b rule.Chassis) bool {
	return slices.ContainsFunc(a.Encaps, func(e rule.Encap) bool {
		return slices.ContainsFunc(b.Encaps, func(other rule.Encap) bool { return other.IP == e.IP })
	})
}

func addressesOf(c rule.Chassis) string {
	var texts []string
	for _, encap := range c.Encaps {
		texts = append(texts, encap.Type+" "+encap.IP)
	}
	return strings.Join(texts, ", ")
}
