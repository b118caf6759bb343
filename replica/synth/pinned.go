package synth

import "ovs-offline/internal/ovsdb/file"

// pinnedPorts returns the chassis of the ports of switches whose router has exactly one gateway
// chassis on them, by the names of the ports. OVN-Kubernetes gives the switch of a node such a
// router port, and its pods are on that node.
func pinnedPorts(content *file.Content) map[string]string {
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
	pinned := map[string]string{}
	for _, row := range content.Rows("Logical_Switch") {
		chassis := ""
		for _, id := range row.UUIDs("ports") {
			if found := routers[ports[id].router]; found != "" {
				chassis = found
			}
		}
		for _, id := range row.UUIDs("ports") {
			if chassis != "" {
				pinned[ports[id].name] = chassis
			}
		}
	}
	return pinned
}
