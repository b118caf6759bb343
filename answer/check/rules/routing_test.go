package rules

import (
	"testing"

	"ovs-offline/test/generate/ovndb"
)

// routed builds a router with one port, and lets more add to it.
func routed(more func(n *network)) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		n.owner("Logical_Router", "main", ovndb.Row{})
		n.routerPort("main", "main-blue", "02:00:00:00:00:09", "blue", "10.0.0.254/24", "fd00::1/64")
		more(n)
	}
}

func TestRouting(t *testing.T) {
	route := func(columns ovndb.Row) func(*network) {
		return routed(func(n *network) {
			n.has("main", "static_routes", n.addNB("Logical_Router_Static_Route", columns))
		})
	}
	policy := func(columns ovndb.Row) func(*network) {
		return routed(func(n *network) { n.has("main", "policies", n.addNB("Logical_Router_Policy", columns)) })
	}
	const noPath = ": no port of the router has a network with the next hop"
	test(t, map[string]testCase{
		"a next hop in a network": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "10.0.0.1"}), nil},
		"a next hop in none": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "10.1.0.1"}),
			[]string{"error: route 0.0.0.0/0 via 10.1.0.1 of router main" + noPath}},
		"a port for the next hop": {routeWithoutPath,
			route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "10.1.0.1", "output_port": "main-blue"}), nil},
		"another router's port": {routeWithoutPath,
			route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "10.0.0.1", "output_port": "other"}),
			[]string{"error: route 0.0.0.0/0 via 10.0.0.1 of router main: the router has no port other"}},
		"a port alone": {routeWithoutPath,
			route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "", "output_port": "main-blue"}), nil},
		"a route that discards": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "10.66.0.0/16", "nexthop": "discard"}),
			nil},
		"a link-local next hop":  {routeWithoutPath, route(ovndb.Row{"ip_prefix": "::/0", "nexthop": "fe80::1"}), nil},
		"a next hop with length": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "::/0", "nexthop": "fd00::9/128"}), nil},
		"a next hop of words": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "gateway"}),
			[]string{"error: route 0.0.0.0/0 via gateway of router main: its next hop is malformed"}},
		"a destination of words": {routeWithoutPath, route(ovndb.Row{"ip_prefix": "all", "nexthop": "10.0.0.1"}),
			[]string{"error: route all via 10.0.0.1 of router main: its destination is malformed"}},
		"a router that is off": {routeWithoutPath, func(n *network) {
			route(ovndb.Row{"ip_prefix": "0.0.0.0/0", "nexthop": "10.1.0.1"})(n)
			n.owners["main"]["enabled"] = false
		}, nil},
		"a policy with a path": {policyWithoutPath,
			policy(ovndb.Row{"action": "reroute", "match": "ip4", "priority": 1, "nexthops": ovndb.Set("10.0.0.1", "10.0.0.2")}),
			nil},
		"a policy with one lost": {policyWithoutPath,
			policy(ovndb.Row{"action": "reroute", "match": "ip4", "priority": 1, "nexthops": ovndb.Set("10.0.0.1", "10.9.0.2")}),
			[]string{"error: policy route priority 1: ip4, reroute to 10.0.0.1, 10.9.0.2 of router main: no port of the router has a network with next hop 10.9.0.2"}},
		"a policy of older OVN": {policyWithoutPath,
			policy(ovndb.Row{"action": "reroute", "match": "ip4", "priority": 1, "nexthop": "10.9.0.2"}),
			[]string{"error: policy route priority 1: ip4, reroute to 10.9.0.2 of router main: no port of the router has a network with next hop 10.9.0.2"}},
		"a policy that allows": {policyWithoutPath,
			policy(ovndb.Row{"action": "allow", "match": "ip4", "priority": 1, "nexthop": ""}), nil},
		"a switch without router": {routerPortMissing, routed(func(n *network) {
			n.port("blue", "lost", nil, ovndb.Row{"type": "router", "options": ovndb.Map("router-port", "gone")})
		}), []string{"error: port lost of switch blue leads to router port gone, which does not exist"}},
		"a switch to no router": {routerPortMissing,
			routed(func(n *network) { n.port("blue", "lost", nil, ovndb.Row{"type": "router"}) }),
			[]string{"error: port lost of switch blue is for a router, and names no port of one"}},
		"peers": {routerPortMissing, routed(func(n *network) {
			n.owner("Logical_Router", "second", ovndb.Row{})
			n.has("main", "ports", n.addNB("Logical_Router_Port",
				ovndb.Row{"name": "a", "mac": "02:00:00:00:00:01", "networks": "10.1.0.1/30", "peer": "b"}))
			n.has("second", "ports", n.addNB("Logical_Router_Port",
				ovndb.Row{"name": "b", "mac": "02:00:00:00:00:02", "networks": "10.1.0.2/30", "peer": "a"}))
		}), nil},
		"a peer of another": {routerPortMissing, routed(func(n *network) {
			n.has("main", "ports", n.addNB("Logical_Router_Port",
				ovndb.Row{"name": "a", "mac": "02:00:00:00:00:01", "networks": "10.1.0.1/30", "peer": "main-blue"}))
		}), []string{"error: port a of router main has peer main-blue, which has another peer"}},
		"a port to nothing": {routerPortUnconnected,
			routed(func(n *network) { n.routerPort("main", "lost", "02:00:00:00:00:01", "", "10.3.0.1/24") }),
			[]string{"warning: port lost of router main is connected to nothing"}},
		"a loopback of a router": {routerPortUnconnected,
			routed(func(n *network) { n.routerPort("main", "lo", "02:00:00:00:00:01", "", "10.3.0.1/32", "fd03::1/128") }), nil},
		"sessions": {bfdSessionDown, routed(func(n *network) {
			for _, status := range []string{"down", "up", "admin_down"} {
				n.addNB("BFD", ovndb.Row{"logical_port": "main-blue", "dst_ip": "10.0.0.1", "status": status})
			}
		}), []string{"error: the BFD session of router port main-blue with 10.0.0.1 is down"}},
	})
}

func TestTranslations(t *testing.T) {
	rule := func(columns ovndb.Row) func(*network) {
		return routed(func(n *network) { n.has("main", "nat", n.addNB("NAT", columns)) })
	}
	two := func(first, second ovndb.Row) func(*network) {
		return routed(func(n *network) {
			n.has("main", "nat", n.addNB("NAT", first), n.addNB("NAT", second))
			n.port("blue", "a", []string{"02:00:00:00:00:01 10.0.0.1"}, nil)
		})
	}
	dnat := func(external, logical string) ovndb.Row {
		return ovndb.Row{"type": "dnat_and_snat", "external_ip": external, "logical_ip": logical}
	}
	ranged := ovndb.Row{"type": "dnat_and_snat", "external_ip": "10.0.0.7", "logical_ip": "10.9.0.2",
		"external_port_range": "80-90"}
	test(t, map[string]testCase{
		"no gateway": {natWithoutGateway, rule(dnat("10.0.0.7", "10.9.0.1")),
			[]string{"error: router main has 1 NAT rule and no gateway"}},
		"a gateway router": {natWithoutGateway, func(n *network) {
			rule(dnat("10.0.0.7", "10.9.0.1"))(n)
			n.owners["main"]["options"] = ovndb.Map("chassis", "one")
		}, nil},
		"a gateway port": {natWithoutGateway, routed(func(n *network) {
			n.has("main", "nat", n.addNB("NAT", dnat("10.0.0.7", "10.9.0.1")))
			gateway := n.addNB("Gateway_Chassis", ovndb.Row{"name": "g", "chassis_name": "one"})
			n.has("main", "ports", n.addNB("Logical_Router_Port",
				ovndb.Row{"name": "out", "mac": "02:00:00:00:00:01", "networks": "10.1.0.1/24", "gateway_chassis": gateway}))
		}), nil},
		"a lost port": {natWithoutPort,
			rule(ovndb.Row{"type": "dnat_and_snat", "external_ip": "10.0.0.7", "logical_ip": "10.9.0.1",
				"external_mac": "02:00:00:00:00:01", "logical_port": "gone"}),
			[]string{"error: floating ip 10.0.0.7 for 10.9.0.1 of router main names port gone, which does not exist"}},
		"a lost port that is unused": {natWithoutPort,
			rule(ovndb.Row{"type": "dnat_and_snat", "external_ip": "10.0.0.7", "logical_ip": "10.9.0.1",
				"logical_port": "gone"}), nil},
		"one address for two": {duplicateFloatingIP, two(dnat("10.0.0.7", "10.9.0.1"), dnat("10.0.0.7", "10.9.0.2")),
			[]string{"error: floating ip 10.0.0.7 for 10.9.0.1 of router main and floating ip 10.0.0.7 for 10.9.0.2 of router main have the same external address"}},
		"one address for two ranges": {duplicateFloatingIP, two(dnat("10.0.0.7", "10.9.0.1"), ranged), nil},
		"one address to send with": {duplicateFloatingIP,
			two(dnat("10.0.0.7", "10.9.0.1"), ovndb.Row{"type": "snat", "external_ip": "10.0.0.7", "logical_ip": "10.9.0.0/24"}),
			nil},
		"the router's own address": {duplicateFloatingIP, rule(dnat("10.0.0.254", "10.9.0.1")), nil},
		"the address of an instance": {duplicateFloatingIP, two(dnat("10.0.0.1", "10.9.0.1"), dnat("10.0.0.8", "10.9.0.2")),
			[]string{"error: port a of switch blue has the external address of floating ip 10.0.0.1 for 10.9.0.1 of router main"}},
		"an address of another place": {duplicateFloatingIP,
			two(dnat("192.0.2.1", "10.9.0.1"), dnat("192.0.2.1", "10.9.0.2")), nil},
	})
}
