package rules

import (
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// gatewayChassisName finds rows of Gateway_Chassis of neutron's routers that neutron did not name.
// neutron names them ROUTERPORT_CHASSIS and finds them by that name; ovn-nbctl lrp-set-gateway-chassis
// writes ROUTERPORT-CHASSIS.
func gatewayChassisName() rule.Rule {
	return rule.Rule{
		Name: "gateway-chassis-name", Severity: rule.Warning,
		Needs:   []rule.Data{rule.NB(gateways()...)},
		Follows: "neutron does not find the row, and can't move the gateway to another chassis",
		Sources: []string{"launchpad.net bug 2143751", "ovn-nbctl(8), lrp-set-gateway-chassis"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			routers, ofNeutron := map[string]string{}, map[string]bool{}
			for _, r := range n.Routers {
				for _, p := range r.Ports {
					ofNeutron[p.Name] = p.IDs[ovn.NeutronRouter] != ""
					routers[p.Name] = " of " + d.Title("Logical_Router", r.UUID)
				}
			}
			return d.NB.Each("Gateway_Chassis", func(row ovsdb.Row) {
				name, chassis := row.String("name"), row.String("chassis_name")
				port, joined := strings.CutSuffix(name, "-"+chassis)
				if !joined || !ofNeutron[port] && !ovsdb.IsUUID(strings.TrimPrefix(port, "lrp-")) {
					return
				}
				found(rule.Finding{What: fmt.Sprintf("gateway chassis %s of port %s%s is not named as neutron names it, %s_%s", name, port, routers[port], port, chassis),
					Evidence: []string{inNB("Gateway_Chassis", row.UUID, "name")}, Next: []rule.Next{historyOf(row.UUID)}})
			}, "name", "chassis_name")
		}),
	}
}
