package rules

import (
	"testing"

	"ovs-offline/test/generate/ovndb"
)

// TestAddresses has what looks like a second holder of an address beside what is one.
func TestAddresses(t *testing.T) {
	const one, two = "02:00:00:00:00:01 10.0.0.1", "02:00:00:00:00:02 10.0.0.2"
	pair := func(second string, columns ovndb.Row) func(*network) {
		return func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			n.port("blue", "a", []string{one}, nil)
			n.port("blue", "b", []string{second}, columns)
		}
	}
	sameIP := []string{"error: port a and port b of switch blue have the same IP address 10.0.0.1"}
	test(t, map[string]testCase{
		"one MAC address": {duplicateMAC, pair("02:00:00:00:00:01 10.0.0.2", nil),
			[]string{"error: port a and port b of switch blue have the same MAC address 02:00:00:00:00:01"}},
		"two MAC addresses": {duplicateMAC, pair(two, nil), nil},
		"one IP address":    {duplicateIP, pair("02:00:00:00:00:02 10.0.0.1", nil), sameIP},
		"one of several":    {duplicateIP, pair("02:00:00:00:00:02 10.0.0.7 10.0.0.1", nil), sameIP},
		"a dynamic address": {duplicateIP,
			pair("dynamic", ovndb.Row{"dynamic_addresses": "02:00:00:00:00:02 10.0.0.1"}), sameIP},
		"of a virtual port":  {duplicateIP, pair("02:00:00:00:00:02 10.0.0.1", ovndb.Row{"type": "virtual"}), nil},
		"of a disabled port": {duplicateIP, pair("02:00:00:00:00:02 10.0.0.1", ovndb.Row{"enabled": false}), nil},
		"allowed by port security": {duplicateIP,
			pair(two, ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:02 10.0.0.2 10.0.0.1")}), nil},
		"of another zone's machine": {duplicateIP, pair("02:00:00:00:00:02 10.0.0.1", ovndb.Row{"type": "remote"}), sameIP},
		"of two switches": {duplicateIP, func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			n.owner("Logical_Switch", "green", ovndb.Row{})
			n.port("blue", "a", []string{one}, nil)
			n.port("green", "b", []string{one}, nil)
		}, nil},
		"of other zones' routers": {duplicateIP, func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			n.owner("Logical_Router", "main", ovndb.Row{})
			n.routerPort("main", "main-blue", "02:00:00:00:00:01", "blue", "10.0.0.1/24")
			n.port("blue", "far", []string{"02:00:00:00:00:02 10.0.0.1"}, ovndb.Row{"type": "remote"})
			n.port("blue", "farther", []string{"02:00:00:00:00:03 10.0.0.1"}, ovndb.Row{"type": "remote"})
		}, nil},
		"of a router": {duplicateIP, func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			n.owner("Logical_Router", "main", ovndb.Row{})
			n.routerPort("main", "main-blue", "02:00:00:00:00:09", "blue", "10.0.0.1/24")
			n.port("blue", "a", []string{one}, nil)
		}, []string{"error: port a and router main (port blue-main-blue) of switch blue have the same IP address 10.0.0.1"}},
		"its own port security": {portSecurityExcludes,
			pair(two, ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:02 10.0.0.2/24 10.0.0.9")}), nil},
		"port security by MAC": {portSecurityExcludes,
			pair(two, ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:02")}), nil},
		"another MAC's": {portSecurityExcludes,
			pair(two, ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:03 10.0.0.2")}),
			[]string{"error: the port security of port b of switch blue does not allow its own address 02:00:00:00:00:02"}},
		"another IP address's": {portSecurityExcludes,
			pair(two, ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:02 10.0.0.3", "02:00:00:00:00:03 10.0.0.2")}),
			[]string{"error: the port security of port b of switch blue does not allow its own address 10.0.0.2"}},
		"networks of one length": {overlappingNetworks, twoNetworks("10.0.0.1/24", "10.0.0.2/24"),
			[]string{"error: ports one (10.0.0.1/24) and two (10.0.0.2/24) of router main have overlapping networks"}},
		"networks of two lengths": {overlappingNetworks, twoNetworks("10.0.0.1/8", "10.0.0.2/24"),
			[]string{"warning: ports one (10.0.0.1/8) and two (10.0.0.2/24) of router main have overlapping networks"}},
		"a host in a network": {overlappingNetworks, twoNetworks("10.0.0.1/8", "10.0.0.2/32"), nil},
		"link-local networks": {overlappingNetworks, twoNetworks("fe80::1/64", "fe80::2/64"), nil},
		"a learned address": {macBindingContradicts, binding("10.0.0.1", "02:00:00:00:00:77", nil),
			[]string{"warning: the learned MAC binding of 10.0.0.1 on router port main-blue has MAC address 02:00:00:00:00:77, but port a has 02:00:00:00:00:01"}},
		"the right address":           {macBindingContradicts, binding("10.0.0.1", "02:00:00:00:00:01", nil), nil},
		"an address that no port has": {macBindingContradicts, binding("10.0.0.50", "02:00:00:00:00:77", nil), nil},
		"the router's own address":    {macBindingContradicts, binding("10.0.0.254", "02:00:00:00:00:77", nil), nil},
		"an address that may move": {macBindingContradicts,
			binding("10.0.0.1", "02:00:00:00:00:02",
				ovndb.Row{"port_security": ovndb.Set("02:00:00:00:00:02 10.0.0.2 10.0.0.1")}), nil},
		"a learned port": {fdbContradicts, func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			n.port("blue", "a", []string{one}, nil)
			n.port("blue", "open", []string{"unknown"}, nil)
			n.port("blue", "outside", []string{"unknown"},
				ovndb.Row{"type": "localnet", "options": ovndb.Map("network_name", "physnet")})
			datapath := n.addSB("Datapath_Binding", ovndb.Row{"tunnel_key": 5})
			n.addSB("Port_Binding", ovndb.Row{"logical_port": "open", "datapath": datapath, "tunnel_key": 2})
			n.addSB("Port_Binding", ovndb.Row{"logical_port": "outside", "datapath": datapath, "tunnel_key": 3})
			n.addSB("FDB", ovndb.Row{"mac": "02:00:00:00:00:01", "dp_key": 5, "port_key": 2})
			n.addSB("FDB", ovndb.Row{"mac": "02:00:00:00:00:01", "dp_key": 5, "port_key": 3})
			n.addSB("FDB", ovndb.Row{"mac": "02:00:00:00:00:66", "dp_key": 5, "port_key": 2})
		}, []string{"warning: 02:00:00:00:00:01 of port a was learned at port open"}},
	})
}

// twoNetworks builds a router with two ports.
func twoNetworks(one, two string) func(*network) {
	return func(n *network) {
		n.owner("Logical_Router", "main", ovndb.Row{})
		n.routerPort("main", "one", "02:00:00:00:00:01", "", one)
		n.routerPort("main", "two", "02:00:00:00:00:02", "", two)
	}
}

// binding builds a router with a learned MAC address, and a second port with these columns.
func binding(ip, mac string, columns ovndb.Row) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.owner("Logical_Router", "main", ovndb.Row{})
		n.routerPort("main", "main-blue", "02:00:00:00:00:09", "blue", "10.0.0.254/24")
		n.port("blue", "a", []string{"02:00:00:00:00:01 10.0.0.1"}, nil)
		n.port("blue", "b", []string{"02:00:00:00:00:02 10.0.0.2"}, columns)
		datapath := n.addSB("Datapath_Binding", ovndb.Row{"tunnel_key": 1})
		n.addSB("MAC_Binding", ovndb.Row{"logical_port": "main-blue", "ip": ip, "mac": mac, "datapath": datapath})
	}
}
