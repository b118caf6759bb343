package synth

import (
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
)

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
func pinnedPorts(content *file.Content, network *ovn.Northbound) map[string]pin {
	gateways := map[string]string{} // chassis by the UUIDs of Gateway_Chassis
	for _, row := range content.Rows("Gateway_Chassis") {
		gateways[row.UUID] = row.String("chassis_name")
	}
	pinned := map[string]pin{}
	for _, s := range network.Switches {
		var found pin
		for _, p := range s.Ports {
			router := network.RouterPorts[p.Options["router-port"]]
			if router == nil || len(router.Chassis) != 1 || gateways[router.Chassis[0]] == "" {
				continue
			}
			found.chassis = gateways[router.Chassis[0]]
			if router.Name == nodeGateway+s.Name {
				found.host = s.Name
			}
		}
		for _, p := range s.Ports {
			if found.chassis != "" {
				pinned[p.Name] = found
			}
		}
	}
	return pinned
}
