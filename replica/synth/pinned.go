package synth

import "ovs-offline/internal/ovsdb/file"

// pin is the only gateway chassis on a switch.
type pin struct {
	chassis string
	host    string // the host name of the chassis, "" if the switch does not have it
}

// nodeGateway begins the name of the router port on a node's switch (types.RouterToSwitchPrefix of
// OVN-Kubernetes). The name of the node follows, and the switch has the same name.
const nodeGateway = "rtos-"

// pinnedPorts returns the pins of the ports of switches whose router has exactly one gateway
// chassis on them, by the names of the ports. OVN-Kubernetes gives the switch of each node such a
// router port, and the node's pods are on that chassis.
func pinnedPorts(content *file.Content) map[string]pin {
	gateways := map[string]string{} // chassis by the UUIDs of Gateway_Chassis
	for _, row := range content.Rows("Gateway_Chassis") {
		gateways[row.UUID] = row.String("chassis_name")
	}
	routers := map[string]string{} // chassis by the names of router ports
	for _, row := range content.Rows("Logical_Router_Port") {
		if members := row.UUIDs("gateway_chassis"); len(members) == 1 {
			routers[row.String("name")] = gateways[members[0]]
		}
	}
	type port struct{ name, router string }
	ports := map[string]port{}
	for _, row := range content.Rows("Logical_Switch_Port") {
		ports[row.UUID] = port{row.String("name"), row.Value("options", "router-port")}
	}
	pinned := map[string]pin{}
	for _, row := range content.Rows("Logical_Switch") {
		var found pin
		for _, id := range row.UUIDs("ports") {
			if router := ports[id].router; routers[router] != "" {
				found.chassis = routers[router]
				if router == nodeGateway+row.String("name") {
					found.host = row.String("name")
				}
			}
		}
		for _, id := range row.UUIDs("ports") {
			if found.chassis != "" {
				pinned[ports[id].name] = found
			}
		}
	}
	return pinned
}
