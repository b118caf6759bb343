package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
)

// gatewayChassisMissing finds gateway ports, gateway routers and external ports that name a chassis that the southbound
// database does not have.
func gatewayChassisMissing() rule.Rule {
	return rule.Rule{
		Name: "gateway-chassis-missing", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(append(gateways(), rule.All("Logical_Switch_Port", "_uuid", "name", "type", "ha_chassis_group"))...), rule.SB(chassis())},
		Follows: "it can't take over the gateway",
		Sources: []string{"ovn-nb(5), Gateway_Chassis and HA_Chassis, chassis_name", "ovn-nb(5), Logical_Router, options:chassis"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			chassis, err := d.Chassis()
			if err != nil || d.SB == nil {
				return err
			}
			exists := func(name string) bool {
				return slices.ContainsFunc(chassis, func(c ovn.Chassis) bool { return c.Name == name })
			}
			rows, err := gatewayRows(d, n)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if exists(row.chassis) {
					continue
				}
				found(rule.Finding{What: fmt.Sprintf("gateway port %s of %s names chassis %s, which does not exist", row.port.Name, d.Title("Logical_Router", row.port.Router.UUID), row.chassis),
					Evidence: []string{inNB(row.table, row.uuid, "chassis_name"), "Chassis in the southbound database: name"}, Next: []rule.Next{historyOf(row.uuid), rule.Ask("history", "sb", "--table", "Chassis")}})
			}
			for _, r := range n.Routers {
				if name := r.Chassis(); name != "" && !exists(name) {
					found(rule.Finding{Severity: rule.Error, What: fmt.Sprintf("gateway %s is for chassis %s, which does not exist", d.Title("Logical_Router", r.UUID), name),
						Follows: "the router is nowhere, and nothing passes it", Evidence: []string{inNB("Logical_Router", r.Name, "options:chassis"), "Chassis in the southbound database: name"},
						Next: []rule.Next{historyOf(r.UUID), rule.Ask("history", "sb", "--table", "Chassis")}})
				}
			}
			return externalPorts(d, n, exists, found)
		}),
	}
}

// externalPorts finds external ports whose group has no existing chassis, so that none answers for them.
func externalPorts(d *rule.Deployment, n *ovn.Northbound, exists func(name string) bool, found func(rule.Finding)) error {
	rows, groups, err := chassisRows(d)
	if err != nil {
		return err
	}
	for _, p := range n.SwitchPorts {
		if p.Type != "external" {
			continue
		}
		var names []string
		for _, member := range groups[p.Group] {
			names = append(names, rows[member].chassis)
		}
		why := "has no group of chassis"
		if len(names) > 0 {
			why = "is for chassis that do not exist: " + phrase.FirstNames(names)
		}
		if !slices.ContainsFunc(names, exists) {
			found(rule.Finding{Severity: rule.Error, What: fmt.Sprintf("external %s %s", p.Title(), why),
				Follows: "no chassis answers for the port: it gets no DHCP, and its packets are not routed", Evidence: []string{inNB("Logical_Switch_Port", p.Name, "ha_chassis_group")},
				Next: []rule.Next{historyOf(p.UUID), rule.Ask("history", "sb", "--table", "Chassis")}, Sources: []string{"ovn-nb(5), Logical_Switch_Port, ha_chassis_group"}})
		}
	}
	return nil
}
