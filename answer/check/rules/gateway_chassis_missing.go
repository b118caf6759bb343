package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
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
			return externalPorts(d, exists, found)
		}),
	}
}

// externalPorts finds external ports of which no chassis is there that could answer for them.
func externalPorts(d *rule.Deployment, exists func(name string) bool, found func(rule.Finding)) error {
	members, groups := map[string]string{}, map[string][]string{}
	if err := d.NB.Each("HA_Chassis", func(row ovsdb.Row) { members[row.UUID] = row.String("chassis_name") }, "chassis_name"); err != nil {
		return err
	}
	if err := d.NB.Each("HA_Chassis_Group", func(row ovsdb.Row) { groups[row.UUID] = row.UUIDs("ha_chassis") }, "ha_chassis"); err != nil {
		return err
	}
	return d.NB.Each("Logical_Switch_Port", func(row ovsdb.Row) {
		if row.String("type") != "external" {
			return
		}
		var names []string
		for _, group := range row.UUIDs("ha_chassis_group") {
			for _, member := range groups[group] {
				names = append(names, members[member])
			}
		}
		why := "has no group of chassis"
		if len(names) > 0 {
			why = "is for chassis that do not exist: " + phrase.FirstNames(names)
		}
		if !slices.ContainsFunc(names, exists) {
			found(rule.Finding{Severity: rule.Error, What: fmt.Sprintf("external %s %s", d.Title("Logical_Switch_Port", row.UUID), why),
				Follows: "no chassis answers for the port: it gets no DHCP, and its packets are not routed", Evidence: []string{inNB("Logical_Switch_Port", row.String("name"), "ha_chassis_group")},
				Next: []rule.Next{historyOf(row.UUID), rule.Ask("history", "sb", "--table", "Chassis")}, Sources: []string{"ovn-nb(5), Logical_Switch_Port, ha_chassis_group"}})
		}
	}, "name", "type", "ha_chassis_group")
}
