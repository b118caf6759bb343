package names

import (
	"net/netip"
	"strings"
	"testing"

	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// TestVacantNetworks asks whether something may have an address that no port has: a network is
// vacant only if each of its ports can have no other address than its own.
func TestVacantNetworks(t *testing.T) {
	const mac, other = "fa:16:3e:10:00:05", "fa:16:3e:10:00:06"
	secured := ovndb.Row{"name": "p1", "addresses": mac + " 10.0.0.5 fd00::5", "port_security": mac + " 10.0.0.5 fd00::5"}
	for what, c := range map[string]struct {
		port   ovndb.Row // a second one
		ip     string
		vacant bool
	}{
		"all ports are secured":         {nil, "10.0.0.99", true},
		"the same over IPv6":            {nil, "fd00::99", true},
		"the address of a port":         {nil, "10.0.0.5", false},
		"the address of the router":     {nil, "10.0.0.1", false},
		"a port with unknown addresses": {ovndb.Row{"addresses": "unknown"}, "10.0.0.99", false},
		"a port without port security":  {ovndb.Row{"addresses": other + " 10.0.0.6"}, "10.0.0.99", false},
		"port security by MAC address only": {ovndb.Row{"addresses": other + " 10.0.0.6", "port_security": other},
			"10.0.0.99", false},
		"an allowed address": {ovndb.Row{"addresses": other + " 10.0.0.6",
			"port_security": other + " 10.0.0.6 10.0.0.96/28"}, "10.0.0.99", false},
		"another address is allowed": {ovndb.Row{"addresses": other + " 10.0.0.6",
			"port_security": other + " 10.0.0.6 10.0.0.32/28"}, "10.0.0.99", true},
		"a physical network": {ovndb.Row{"type": "localnet", "addresses": "unknown"}, "10.0.0.99", false},
		"a port of SR-IOV": {ovndb.Row{"type": "external", "addresses": other + " 10.0.0.6"}, "10.0.0.99",
			false},
		"the metadata of neutron": {ovndb.Row{"type": "localport", "addresses": other + " 10.0.0.2"}, "10.0.0.99",
			true},
		"the port of a node": {ovndb.Row{"name": "k8s-node1", "addresses": other + " 10.0.0.2"}, "10.0.0.99",
			true},
	} {
		ports := map[string]ovndb.Row{id(1): secured,
			id(2): {"name": "lsp", "type": "router", "options": ovndb.Map("router-port", "lrp"), "addresses": "router"}}
		all := []any{ovndb.UUID(id(1)), ovndb.UUID(id(2))}
		if c.port != nil {
			if c.port["name"] == nil {
				c.port["name"] = "p2"
			}
			ports[id(3)], all = c.port, append(all, ovndb.UUID(id(3)))
		}
		nb := ovndb.Create(t, ovs.NBSchema)
		nb.Add(ovndb.Rows{"Logical_Switch_Port": ports,
			"Logical_Switch": {id(10): {"name": "net", "ports": ovndb.Set(all...)}},
			"Logical_Router_Port": {id(11): {"name": "lrp", "mac": "fa:16:3e:aa:00:01",
				"networks": ovndb.Set("10.0.0.1/24", "fd00::1/64")}},
			"Logical_Router": {id(12): {"name": "r", "ports": ovndb.UUID(id(11))}}})
		n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
		if got := n.Vacant("lrp", netip.MustParseAddr(c.ip)); (got != "") != c.vacant || c.vacant &&
			!strings.HasPrefix(got, "network net (") {
			t.Errorf("%s: %q, and vacant is %t", what, got, c.vacant)
		}
	}
}

// TestRouterForItself asks whether a router's next hop is its own address, as kube-ovn's routes by
// source are.
func TestRouterForItself(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {id(2): {"name": "blue-a-blue", "type": "router",
			"options": ovndb.Map("router-port", "blue-blue-a"), "addresses": "router"}},
		"Logical_Switch": {id(10): {"name": "blue-a", "ports": ovndb.UUID(id(2))}},
		"Logical_Router_Port": {
			id(11): {"name": "blue-blue-a", "mac": "fa:16:3e:aa:00:01", "networks": ovndb.Set("10.30.0.1/24", "fd00::1/64")},
			id(12): {"name": "blue-green", "mac": "fa:16:3e:aa:00:02", "networks": "10.40.0.1/24"},
		},
		"Logical_Router": {id(13): {"name": "blue", "ports": ovndb.Set(ovndb.UUID(id(11)), ovndb.UUID(id(12)))}},
	})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	for ip, want := range map[string]bool{"10.30.0.1": true, "fd00::1": true, "10.30.0.2": false, "10.40.0.1": false} {
		if got := n.Own("blue-blue-a", netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %t, want %t", ip, got, want)
		}
	}
}

// TestDetachedNetworks asks whether nodes and machines outside have a route to an address: in the
// networks of kube-ovn's VPCs other than the default one, they have none.
func TestDetachedNetworks(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	set := func(numbers ...int) any {
		var all []any
		for _, n := range numbers {
			all = append(all, ovndb.UUID(id(n)))
		}
		return ovndb.Set(all...)
	}
	toRouter := func(port string) ovndb.Row {
		return ovndb.Row{"name": "to-" + port, "type": "router", "options": ovndb.Map("router-port", port),
			"addresses": "router"}
	}
	router := func(name, network string) ovndb.Row {
		return ovndb.Row{"name": name, "mac": "fa:16:3e:aa:00:01", "networks": network}
	}
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {
			id(1): toRouter("blue-a"), id(2): toRouter("green-a"), id(3): toRouter("edge-a"), id(4): toRouter("edge-external"),
			id(5): toRouter("cluster-default"), id(6): toRouter("cluster-join"),
			id(7): toRouter("open-a"), id(8): toRouter("open-external"),
			id(9):  {"name": "localnet.external", "type": "localnet", "addresses": "unknown"},
			id(10): port("node-node1", "00:00:00:aa:00:09 100.64.0.2", "vendor", "kube-ovn", "ls", "join"),
			id(11): port("b1.blue", "00:00:00:aa:00:11 10.30.0.11", "vendor", "kube-ovn", "pod", "blue/b1"),
			id(12): port("g1.green", "00:00:00:aa:00:12 10.32.0.7", "vendor", "kube-ovn", "pod", "green/g1"),
			id(13): port("e1.edge", "00:00:00:aa:00:13 10.40.0.2", "vendor", "kube-ovn", "pod", "edge/e1"),
			id(14): port("o1.open", "00:00:00:aa:00:14 10.50.0.2", "vendor", "kube-ovn", "pod", "open/o1"),
			id(15): port("d1.default", "00:00:00:aa:00:15 10.16.0.2", "vendor", "kube-ovn", "pod", "default/d1"),
		},
		"Logical_Switch": {
			id(21): {"name": "blue-a", "ports": set(1, 11)}, id(22): {"name": "green-a", "ports": set(2, 12)},
			id(23): {"name": "edge-a", "ports": set(3, 13)},
			id(24): {"name": "external", "ports": set(4, 8, 9)}, id(25): {"name": "ovn-default", "ports": set(5, 15)},
			id(26): {"name": "join", "ports": set(6, 10)}, id(27): {"name": "open-a", "ports": set(7, 14)},
		},
		"Logical_Router_Port": {
			id(31): router("blue-a", "10.30.0.1/24"), id(32): router("green-a", "10.32.0.1/24"),
			id(33): router("edge-a", "10.40.0.1/24"), id(34): router("edge-external", "172.19.0.10/24"),
			id(35): router("cluster-default", "10.16.0.1/16"), id(36): router("cluster-join", "100.64.0.1/16"),
			id(37): router("open-a", "10.50.0.1/24"), id(38): router("open-external", "172.19.0.11/24"),
			id(39): {"name": "blue-green", "mac": "fa:16:3e:aa:00:01", "networks": "169.254.100.1/30", "peer": "green-blue"},
			id(40): {"name": "green-blue", "mac": "fa:16:3e:aa:00:02", "networks": "169.254.100.2/30", "peer": "blue-green"},
		},
		"Logical_Router": {
			id(51): {"name": "blue", "ports": set(31, 39)}, id(52): {"name": "green", "ports": set(32, 40)},
			id(53): {"name": "edge", "ports": set(33, 34), "nat": set(60)},
			id(54): {"name": "ovn-cluster", "ports": set(35, 36)}, id(55): {"name": "open", "ports": set(37, 38)},
		},
		"NAT": {id(60): {"type": "snat", "external_ip": "172.19.0.50", "logical_ip": "10.40.0.0/24"}},
	})
	n := load(t, &snapshot.Deployment{NB: open(t, nb.Close())})
	for ip, want := range map[string]string{
		"10.30.0.11":  "network blue-a (10.30.0.0/24)",  // a VPC
		"10.32.0.7":   "network green-a (10.32.0.0/24)", // its peer
		"10.40.0.2":   "network edge-a (10.40.0.0/24)",  // a VPC with a rule for all that leaves
		"10.32.0.8":   "",                               // no endpoint has it
		"10.50.0.2":   "",                               // a VPC that outsiders may have a route to
		"10.16.0.2":   "",                               // nodes are in the default VPC
		"172.19.0.99": "",                               // the physical network itself
		"192.0.2.1":   "",                               // no network
	} {
		if got := n.Detached(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %q, want %q", ip, got, want)
		}
	}
}
