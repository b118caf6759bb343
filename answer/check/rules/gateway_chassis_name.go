package rules

import (
	"fmt"

	"ovs-offline/answer/check/rule"
)

// gatewayChassisName finds rows of Gateway_Chassis of neutron's routers that neutron did not name.
// neutron names them ROUTERPORT_CHASSIS and finds them by that name; ovn-nbctl lrp-set-gateway-chassis
// writes ROUTERPORT-CHASSIS.
func gatewayChassisName() rule.Rule {
	return rule.Rule{
		Name: "gateway-chassis-name", Severity: rule.Warning,
		Follows: "neutron does not find the row, and can't move the gateway to another chassis",
		Sources: []string{"launchpad.net bug 2143751", "ovn-nbctl(8), lrp-set-gateway-chassis"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *rule.Northbound, found func(rule.Finding)) error {
			rows, err := gatewayRows(d, n)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if row.table != "Gateway_Chassis" || row.port.IDs["neutron:router_name"] == "" || row.name == row.port.Name+"_"+row.chassis {
					continue
				}
				found(rule.Finding{What: fmt.Sprintf("gateway chassis %s of port %s of %s is not named as neutron names it, %s_%s", row.name, row.port.Name, d.Title("Logical_Router", row.port.Router.UUID), row.port.Name, row.chassis),
					Evidence: []string{inNB("Gateway_Chassis", row.uuid, "name")}, Next: []string{historyOf(row.uuid)}})
			}
			return nil
		}),
	}
}
