package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
)

// Kind is the kind of an endpoint, such as a pod or a router's port.
type Kind string

// The kinds of endpoints.
const (
	Pod        Kind = "pod"
	Port       Kind = "port" // of a logical switch, or of a bridge of the ML2/OVS agent
	NodePort   Kind = "node" // the management port of a node
	RouterPort Kind = "router port"
	Service    Kind = "service" // a VIP of a load balancer
	FloatingIP Kind = "floating ip"
	External   Kind = "external" // an address outside of all logical networks
)

// Endpoint is something that sends or receives packets.
type Endpoint struct {
	Kind Kind
	// Name is the name that a user would give it, and that finds it again: "ns1/web-0",
	// "svc/ns2/db:5432", "node/worker-1", the name of a neutron port.
	Name string
	// LogicalPort is the name of its port in OVN, which is the iface-id of its interface;
	// "" for a service.
	LogicalPort string
	MAC         string
	IPs         []netip.Addr
	// Switch is the logical switch (or router) that it is on, and Network the name that a
	// user gave to it.
	Switch, Network string
	// Chassis is the host name of the chassis that its port is bound to, or the name of
	// the chassis if it has no host name; "" for a port that is not bound.
	Chassis string
	// Node is the node of the set that its port is bound to, "" for none of them.
	Node string
	// Parent and Tag are the port that carries its packets, and their VLAN, for the port
	// of a container or of a trunk.
	Parent string
	Tag    int
	// Localport is set for a port that every node has, and External for one that is
	// connected to the physical network and not to Open vSwitch, as with SR-IOV.
	Localport, External bool
	// Open is set for a port without port security: it may send with any address.
	Open bool
	// Protocol and Port belong to a service; "" and 0 for a VIP without ports.
	Protocol string
	Port     uint16
	// Backends are the endpoints of a service, as OVN writes them: ADDRESS:PORT.
	Backends []string
	// Balancer is the name of the load balancer of a service.
	Balancer string

	// networks are further names of Network: of ovn-kubernetes and of the NetworkAttachmentDefinition.
	networks []string
	role     role

	zone    int
	remote  bool // another zone has the port
	virtual bool // the instance of its parent has its addresses, beside its own
	// the names and addresses that find it, beside Name
	keys []string
	dhcp string // the UUID of its DHCPv4 options
}

// String describes the endpoint in a line, for a list of candidates.
func (e Endpoint) String() string {
	var details []string
	add := func(what, value string) {
		if value != "" && value != e.Name {
			details = append(details, strings.TrimSpace(what+" "+value))
		}
	}
	if e.LogicalPort != e.Name {
		add("port", e.LogicalPort)
	}
	add("", e.MAC)
	for _, ip := range e.IPs {
		add("", ip.String())
	}
	if e.Kind == Service {
		add("", e.Protocol)
		add("load balancer", e.Balancer)
	}
	if e.Network != "" {
		add("network", e.Network)
	} else {
		add("switch", e.Switch)
	}
	switch {
	case e.Node != "":
		add("on", e.Node)
	case e.Chassis != "":
		add("on", e.Chassis+" (not captured)")
	}
	return fmt.Sprintf("%s (%s: %s)", e.Name, e.Kind, strings.Join(details, ", "))
}

// onlyAddress returns the endpoint with a single address if name is one of its addresses: the
// user asked about that one.
func (e Endpoint) onlyAddress(name string) Endpoint {
	if ip, _, ok := ovn.ParseVIP(name); ok && slices.Contains(e.IPs, ip) {
		e.IPs = []netip.Addr{ip}
	}
	return e
}

// address returns an address of the family, 4 or 6: one of the link only if there is no
// other.
func (e Endpoint) address(family int) (found netip.Addr, ok bool) {
	for _, ip := range e.IPs {
		if familyOf(ip) == family && (!ok || found.IsLinkLocalUnicast() && !ip.IsLinkLocalUnicast()) {
			found, ok = ip, true
		}
	}
	return found, ok
}

func familyOf(ip netip.Addr) int {
	if ip.Is4() {
		return 4
	}
	return 6
}
