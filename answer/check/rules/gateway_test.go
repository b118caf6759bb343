package rules

import (
	"testing"

	"ovs-offline/test/generate/ovndb"
)

// gateway builds a router with a gateway port on a chassis, and the southbound rows of the port. mapping are the
// bridge mappings of the chassis.
func gateway(named, chassis, mapping string, bound bool) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "public", ovndb.Row{})
		n.owner("Logical_Router", "main", ovndb.Row{})
		row := n.addNB("Gateway_Chassis", ovndb.Row{"name": named, "chassis_name": chassis})
		n.has("main", "ports", n.addNB("Logical_Router_Port",
			ovndb.Row{"name": "out", "mac": "02:00:00:00:00:01", "networks": "10.1.0.1/24", "gateway_chassis": row,
				"external_ids": ovndb.Map("neutron:router_name", "x")}))
		n.port("public", "public-out", []string{"router"},
			ovndb.Row{"type": "router", "options": ovndb.Map("router-port", "out")})
		n.port("public", "provnet", []string{"unknown"},
			ovndb.Row{"type": "localnet", "options": ovndb.Map("network_name", "physnet")})
		node := n.addSB("Chassis", ovndb.Row{"name": "one", "hostname": "node1",
			"other_config": ovndb.Map("ovn-bridge-mappings", mapping)})
		binding := ovndb.Row{"logical_port": "cr-out", "type": "chassisredirect", "tunnel_key": 1,
			"datapath": n.addSB("Datapath_Binding", ovndb.Row{"tunnel_key": 1})}
		if bound {
			binding["chassis"] = node
		}
		n.addSB("Port_Binding", binding)
	}
}

// external builds an external port that is for chassis.
func external(chassis ...string) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.addSB("Chassis", ovndb.Row{"name": "one", "hostname": "node1"})
		row := ovndb.Row{"type": "external"}
		if len(chassis) > 0 {
			var members []any
			for _, name := range chassis {
				members = append(members, n.addNB("HA_Chassis", ovndb.Row{"chassis_name": name}))
			}
			row["ha_chassis_group"] = n.addNB("HA_Chassis_Group", ovndb.Row{"name": "g", "ha_chassis": ovndb.Set(members...)})
		}
		n.port("blue", "vf", []string{"02:00:00:00:00:01 10.0.0.1"}, row)
	}
}

// instance builds a port that is for a chassis, bound or not.
func instance(wanted string, bound bool, columns ovndb.Row) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		row := ovndb.Row{"options": ovndb.Map("requested-chassis", wanted)}
		for column, value := range columns {
			row[column] = value
		}
		n.port("blue", "vm", []string{"02:00:00:00:00:01 10.0.0.1"}, row)
		node := n.addSB("Chassis", ovndb.Row{"name": "one", "hostname": "node1"})
		binding := ovndb.Row{"logical_port": "vm", "tunnel_key": 1,
			"datapath": n.addSB("Datapath_Binding", ovndb.Row{"tunnel_key": 1})}
		if bound {
			binding["chassis"] = node
		}
		n.addSB("Port_Binding", binding)
	}
}

func TestGateways(t *testing.T) {
	test(t, map[string]testCase{
		"claimed": {gatewayUnbound, gateway("out_one", "one", "physnet:br-ex", true), nil},
		"not claimed": {gatewayUnbound, gateway("out_one", "one", "physnet:br-ex", false),
			[]string{"error: no chassis has claimed the gateway port out of router main, which is for node1"}},
		"an external port": {gatewayChassisMissing, external("one"), nil},
		"an external port of which one chassis is there": {gatewayChassisMissing, external("gone", "one"), nil},
		"an external port whose chassis is gone": {gatewayChassisMissing, external("gone"),
			[]string{"error: external port vf is for chassis that do not exist: gone"}},
		"an external port without chassis": {gatewayChassisMissing, external(), []string{"error: external port vf has no group of chassis"}},
		"a known chassis":                  {gatewayChassisMissing, gateway("out_one", "one", "", true), nil},
		"an unknown chassis": {gatewayChassisMissing, gateway("out_two", "two", "", true),
			[]string{"warning: gateway port out of router main names chassis two, which does not exist"}},
		"of neutron": {gatewayChassisName, gateway("out_one", "one", "", true), nil},
		"of a person": {gatewayChassisName, gateway("out-one", "one", "", true),
			[]string{"warning: gateway chassis out-one of port out of router main is not named as neutron names it, out_one"}},
		"a mapped network": {localnetUnmapped, gateway("out_one", "one", "other:br-o, physnet:br-ex", true), nil},
		"another network": {localnetUnmapped, gateway("out_one", "one", "physnet1:br-ex", true),
			[]string{"error: chassis node1 has ports of switch public, and does not reach its physical network physnet: gateway port out"}},
		"no ports there": {localnetUnmapped, gateway("out_one", "one", "physnet1:br-ex", false), nil},
		"a gateway router elsewhere": {gatewayChassisMissing, func(n *network) {
			n.owner("Logical_Router", "GR_node1", ovndb.Row{"options": ovndb.Map("chassis", "gone")})
			n.addSB("Chassis", ovndb.Row{"name": "one"})
		}, []string{"error: gateway router GR_node1 is for chassis gone, which does not exist"}},
		"a physical network without a name": {localnetWithoutNetwork, func(n *network) {
			n.owner("Logical_Switch", "public", ovndb.Row{})
			n.port("public", "provnet", []string{"unknown"}, ovndb.Row{"type": "localnet"})
		}, []string{"error: port provnet of switch public is for a physical network, and names none"}},
		"a known host": {requestedChassisMissing, instance("node1", false, nil), nil},
		"a known name": {requestedChassisMissing, instance("one", false, nil), nil},
		"one of two":   {requestedChassisMissing, instance("gone,node1", false, nil), nil},
		"an unknown host": {requestedChassisMissing, instance("node1.example.org", false, nil),
			[]string{"error: port vm is for chassis node1.example.org, which does not exist"}},
		"bound all the same": {requestedChassisMissing, instance("gone", true, nil), nil},
		"a bare machine": {requestedChassisMissing,
			instance("gone", false, ovndb.Row{"external_ids": ovndb.Map("neutron:device_owner", "baremetal:none")}), nil},
		"another zone's": {requestedChassisMissing, instance("gone", false, ovndb.Row{"type": "remote"}), nil},
	})
}

func TestControlPlane(t *testing.T) {
	dhcp := func(cidr string, options ...string) func(*network) {
		return func(n *network) {
			n.owner("Logical_Switch", "blue", ovndb.Row{})
			row := n.addNB("DHCP_Options", ovndb.Row{"cidr": cidr, "options": ovndb.Map(options...)})
			n.port("blue", "vm", []string{"02:00:00:00:00:01 10.0.0.1 fd00::1"}, ovndb.Row{"dhcpv4_options": row})
		}
	}
	needed := []string{"server_id", "10.0.0.254", "server_mac", "02:00:00:00:00:fe", "lease_time", "60"}
	encaps := func(second, kind string) func(*network) {
		return func(n *network) {
			n.addSB("Chassis", ovndb.Row{"name": "one",
				"encaps": n.addSB("Encap", ovndb.Row{"type": "geneve", "ip": "192.0.2.1", "chassis_name": "one"})})
			n.addSB("Chassis", ovndb.Row{"name": "two",
				"encaps": n.addSB("Encap", ovndb.Row{"type": kind, "ip": second, "chassis_name": "two"})})
		}
	}
	test(t, map[string]testCase{
		"usable options": {dhcpUnusable, dhcp("10.0.0.0/24", needed...), nil},
		"another network": {dhcpUnusable, dhcp("10.1.0.0/24", needed...),
			[]string{"error: DHCP options of 10.1.0.0/24 of port vm: the port has no address in 10.1.0.0/24"}},
		"an option too few": {dhcpUnusable, dhcp("10.0.0.0/24", needed[:4]...),
			[]string{"error: DHCP options of 10.0.0.0/24 of port vm: they lack lease_time"}},
		"no options":    {dhcpUnusable, dhcp("10.0.0.0/24"), nil},
		"two addresses": {tunnelAddressTwice, encaps("192.0.2.2", "geneve"), nil},
		"one address": {tunnelAddressTwice, encaps("192.0.2.1", "vxlan"),
			[]string{"error: chassis one and two have the same tunnel address 192.0.2.1"}},
		"a chassis that was": {chassisPrivateAlone,
			func(n *network) { n.addSB("Chassis_Private", ovndb.Row{"name": "ghost"}) },
			[]string{"warning: the southbound database has private data of chassis ghost, which does not exist"}},
		"a chassis that is": {chassisPrivateAlone, func(n *network) {
			n.addSB("Chassis_Private", ovndb.Row{"name": "one", "chassis": n.addSB("Chassis", ovndb.Row{"name": "one"})})
		}, nil},
		"rows without times":      {staleSouthbound, stale(0, 0), nil},
		"rows of an earlier copy": {staleSouthbound, stale(1_800_000_000, 1_799_999_000), nil},
		"rows of a moment ago":    {staleSouthbound, stale(1_800_000_000, 1_800_000_005), nil},
		"rows that were not removed": {staleSouthbound, stale(1_800_000_000, 1_800_000_060),
			[]string{"error: the southbound database still has 2 rows that the northbound one has not: port gone, switch old"}},
	})
}

// stale builds a switch and a port that were deleted from the northbound database, and what else is there.
func stale(nbDate, sbDate int64) func(*network) {
	return func(n *network) {
		n.nbDate, n.sbDate = nbDate, sbDate
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.port("blue", "vm", nil, nil)
		n.owner("Logical_Router", "main", ovndb.Row{})
		n.routerPort("main", "out", "02:00:00:00:00:01", "", "10.0.0.1/24")
		datapath := n.addSB("Datapath_Binding",
			ovndb.Row{"tunnel_key": 1, "external_ids": ovndb.Map("name", "old", "logical-switch",
				"00000063-0000-4000-8000-000000000000")})
		for i, port := range []string{"vm", "out", "cr-out", "gone"} {
			row := ovndb.Row{"logical_port": port, "tunnel_key": i + 1, "datapath": datapath}
			if port == "cr-out" {
				row["type"] = "chassisredirect"
			}
			n.addSB("Port_Binding", row)
		}
	}
}
