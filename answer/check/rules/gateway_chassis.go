package rules

import (
	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// gatewayRow is a row that gives a router port a chassis: of Gateway_Chassis, or of HA_Chassis.
type gatewayRow struct {
	table, uuid, name, chassis string
	port                       *ovn.RouterPort
}

// gatewayRows returns the chassis that the northbound database gives to the gateway ports of routers.
func gatewayRows(d *rule.Deployment, n *ovn.Northbound) ([]gatewayRow, error) {
	rows, groups, err := chassisRows(d)
	if err != nil {
		return nil, err
	}
	var all []gatewayRow
	for _, r := range n.Routers {
		for _, p := range r.Ports {
			for _, uuid := range append(groups[p.Group], p.Chassis...) {
				if row, ok := rows[uuid]; ok {
					row.port = p
					all = append(all, row)
				}
			}
		}
	}
	return all, nil
}

// chassisRows returns the rows of Gateway_Chassis and HA_Chassis, and the members of each group, by their UUIDs.
func chassisRows(d *rule.Deployment) (rows map[string]gatewayRow, groups map[string][]string, err error) {
	rows, groups = map[string]gatewayRow{}, map[string][]string{}
	for _, table := range []string{"Gateway_Chassis", "HA_Chassis"} {
		if err := d.NB.Each(table, func(row ovsdb.Row) {
			rows[row.UUID] = gatewayRow{table, row.UUID, row.String("name"), row.String("chassis_name"), nil}
		}, "name", "chassis_name"); err != nil {
			return nil, nil, err
		}
	}
	return rows, groups, d.NB.Each("HA_Chassis_Group", func(row ovsdb.Row) { groups[row.UUID] = row.UUIDs("ha_chassis") }, "ha_chassis")
}

// gatewayChassis returns the chassis that gateway ports are for, by the names of the ports.
func gatewayChassis(d *rule.Deployment, n *ovn.Northbound) (map[string][]string, error) {
	rows, err := gatewayRows(d, n)
	chassis := map[string][]string{}
	for _, row := range rows {
		chassis[row.port.Name] = append(chassis[row.port.Name], row.chassis)
	}
	return chassis, err
}
