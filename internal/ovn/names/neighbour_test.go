package names

import (
	"net/netip"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
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
		"all ports are secured":             {nil, "10.0.0.99", true},
		"the same over IPv6":                {nil, "fd00::99", true},
		"the address of a port":             {nil, "10.0.0.5", false},
		"the address of the router":         {nil, "10.0.0.1", false},
		"a port with unknown addresses":     {ovndb.Row{"addresses": "unknown"}, "10.0.0.99", false},
		"a port without port security":      {ovndb.Row{"addresses": other + " 10.0.0.6"}, "10.0.0.99", false},
		"port security by MAC address only": {ovndb.Row{"addresses": other + " 10.0.0.6", "port_security": other}, "10.0.0.99", false},
		"an allowed address":                {ovndb.Row{"addresses": other + " 10.0.0.6", "port_security": other + " 10.0.0.6 10.0.0.96/28"}, "10.0.0.99", false},
		"another address is allowed":        {ovndb.Row{"addresses": other + " 10.0.0.6", "port_security": other + " 10.0.0.6 10.0.0.32/28"}, "10.0.0.99", true},
		"a physical network":                {ovndb.Row{"type": "localnet", "addresses": "unknown"}, "10.0.0.99", false},
		"a port of SR-IOV":                  {ovndb.Row{"type": "external", "addresses": other + " 10.0.0.6"}, "10.0.0.99", false},
		"the metadata of neutron":           {ovndb.Row{"type": "localport", "addresses": other + " 10.0.0.2"}, "10.0.0.99", true},
		"the port of a node":                {ovndb.Row{"name": "k8s-node1", "addresses": other + " 10.0.0.2"}, "10.0.0.99", true},
	} {
		ports := map[string]ovndb.Row{id(1): secured, id(2): {"name": "lsp", "type": "router", "options": ovndb.Map("router-port", "lrp"), "addresses": "router"}}
		all := []any{ovndb.UUID(id(1)), ovndb.UUID(id(2))}
		if c.port != nil {
			if c.port["name"] == nil {
				c.port["name"] = "p2"
			}
			ports[id(3)], all = c.port, append(all, ovndb.UUID(id(3)))
		}
		nb := ovndb.Create(t, ovs.NBSchema)
		nb.Add(ovndb.Rows{"Logical_Switch_Port": ports, "Logical_Switch": {id(10): {"name": "net", "ports": ovndb.Set(all...)}},
			"Logical_Router_Port": {id(11): {"name": "lrp", "mac": "fa:16:3e:aa:00:01", "networks": ovndb.Set("10.0.0.1/24", "fd00::1/64")}},
			"Logical_Router":      {id(12): {"name": "r", "ports": ovndb.UUID(id(11))}}})
		n := load(t, &ovn.Deployment{NB: open(t, nb.Close())})
		if got := n.Vacant("lrp", netip.MustParseAddr(c.ip)); (got != "") != c.vacant || c.vacant && !strings.HasPrefix(got, "network net (") {
			t.Errorf("%s: %q, and vacant is %t", what, got, c.vacant)
		}
	}
}

// TestRouterForItself asks whether a router's next hop is its own address, as kube-ovn's routes by
// source are.
func TestRouterForItself(t *testing.T) {
	nb := ovndb.Create(t, ovs.NBSchema)
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": {id(2): {"name": "blue-a-blue", "type": "router", "options": ovndb.Map("router-port", "blue-blue-a"), "addresses": "router"}},
		"Logical_Switch":      {id(10): {"name": "blue-a", "ports": ovndb.UUID(id(2))}},
		"Logical_Router_Port": {
			id(11): {"name": "blue-blue-a", "mac": "fa:16:3e:aa:00:01", "networks": ovndb.Set("10.30.0.1/24", "fd00::1/64")},
			id(12): {"name": "blue-green", "mac": "fa:16:3e:aa:00:02", "networks": "10.40.0.1/24"},
		},
		"Logical_Router": {id(13): {"name": "blue", "ports": ovndb.Set(ovndb.UUID(id(11)), ovndb.UUID(id(12)))}},
	})
	n := load(t, &ovn.Deployment{NB: open(t, nb.Close())})
	for ip, want := range map[string]bool{"10.30.0.1": true, "fd00::1": true, "10.30.0.2": false, "10.40.0.1": false} {
		if got := n.Own("blue-blue-a", netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %t, want %t", ip, got, want)
		}
	}
}
