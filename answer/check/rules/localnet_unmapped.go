package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// localnetUnmapped finds chassis with ports of a switch that is connected to a physical network, which the
// chassis does not reach: its ovn-bridge-mappings lack the network. The ports are ports of instances and
// gateway ports of routers.
func localnetUnmapped() rule.Rule {
	return rule.Rule{
		Name: "localnet-unmapped", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(networkTables()...), rule.SB(chassis(), bindings())},
		Follows: "their packets do not reach the physical network",
		Sources: []string{"ovn-controller(8), external_ids:ovn-bridge-mappings", "ovn-nb(5), Logical_Switch_Port, type localnet, options:network_name"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			chassis, err := d.Chassis()
			if err != nil || d.SB == nil {
				return err
			}
			bindings, err := d.Bindings()
			if err != nil {
				return err
			}
			for _, s := range n.Switches {
				networks := networksOf(s)
				if len(networks) == 0 {
					continue
				}
				on := portsOnChassis(n, s, bindings)
				for _, c := range chassis {
					ports := on[c.UUID]
					if len(ports) == 0 || c.Remote() || slices.ContainsFunc(networks, func(name string) bool { return slices.Contains(c.Networks(), name) }) {
						continue
					}
					slices.Sort(ports)
					found(rule.Finding{What: fmt.Sprintf("chassis %s has ports of %s, and does not reach its physical network %s: %s",
						c.Title(), d.Title("Logical_Switch", s.UUID), strings.Join(networks, ", "), phrase.FirstNames(ports)),
						Evidence: []string{inSB("Chassis", c.Name, "other_config:ovn-bridge-mappings"), inNB("Logical_Switch", s.Name, "ports of type localnet: options:network_name")},
						Next:     []rule.Next{historyOfBound(c.UUID), rule.OnTheNode("ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-mappings")}})
				}
			}
			return nil
		}),
	}
}

// networksOf returns the physical networks that a switch is connected to.
func networksOf(s *ovn.Switch) []string {
	names := map[string]bool{}
	for _, p := range s.Ports {
		if p.Type == "localnet" && p.Options["network_name"] != "" {
			names[p.Options["network_name"]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// portsOnChassis returns what is bound to each chassis and needs the physical network of a switch.
func portsOnChassis(n *ovn.Northbound, s *ovn.Switch, bindings map[string]ovn.Binding) map[string][]string {
	on := map[string][]string{}
	for _, p := range s.Ports {
		name, title := p.Name, p.Title()
		switch p.Type {
		case "":
		case "router":
			end := p.Options["router-port"]
			if name = end; n.RouterPorts[end] != nil && n.RouterPorts[end].Gateway() {
				name = "cr-" + end
			}
			title = "gateway port " + end
		default:
			continue
		}
		if b, ok := bindings[name]; ok && b.Chassis != "" {
			on[b.Chassis] = append(on[b.Chassis], title)
		}
	}
	return on
}
