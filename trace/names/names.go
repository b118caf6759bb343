// Package names finds the endpoints of a trace by the names that users know: pods,
// services, ports of neutron, instances, nodes, addresses. It reads them from the OVN
// databases and the OVS databases of a set of nodes, and makes the first packet between
// two of them.
package names

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"ovs-offline/internal/ovsdb/file"
)

// Zone is what one OVN control plane wrote, and the nodes that it controls. A deployment
// has one zone, with OVN interconnection several. NB or SB is nil where it was not
// collected; without both, the endpoints are those in the nodes' OVS databases.
type Zone struct {
	NB, SB *file.Index
	Nodes  []Node
}

// Integration is the bridge whose flows have the addresses of ports, on nodes without OVN.
const Integration = "br-int"

// Node is a node of the set.
type Node struct {
	Name string
	OVS  *file.Index
	// Flows is the path of the dump of Integration, "" for none. Only nodes
	// without OVN need it: their flows have the addresses of their ports.
	Flows string
}

// Names are the endpoints of a set. It does not change once it is loaded, so that any
// number of questions can be asked at once.
type Names struct {
	endpoints []Endpoint
	byKey     map[string][]int // the endpoints that have a name or an address, by it
	zones     []*zone
}

// zone has what the packets of a zone depend on.
type zone struct {
	switches map[string]*logicalSwitch // by name
	routers  []*logicalRouter
	nb, sb   *file.Index
	networks map[string][]string     // the nodes by the physical networks that they reach
	groups   map[string][]string     // the UUIDs of load balancers by that of their group
	vips     map[netip.Addr][]string // the UUIDs of load balancers by their VIPs
	// learnedMACs returns the addresses that its routers have learned. They are read when a
	// question first needs them.
	learnedMACs func() []macBinding
}

// logicalSwitch is a logical switch with what is attached to it.
type logicalSwitch struct {
	name     string
	given    string // the name that a user gave to its network, "" for none
	subnets  []netip.Prefix
	routers  []*routerPort
	localnet []localnet
	hosts    map[netip.Addr]string // the MAC addresses of its ports
	gateways []string              // the MAC addresses of routers whose addresses are not known
	// open is set if something on the switch may have an address that the databases don't
	// state. allowed are those that port security allows beside the addresses of ports.
	open    bool
	allowed []netip.Prefix
}

type localnet struct {
	network string
	tag     int
}

type logicalRouter struct {
	name  string
	ports []*routerPort
	nat   []nat
	hops  []hop
	// the UUIDs of its load balancers, and of its groups of load balancers
	balancers, groups []string
}

// routerPort is a port of a logical router.
type routerPort struct {
	name     string
	mac      string
	networks []netip.Prefix // with the address of the port
	router   *logicalRouter
	network  *logicalSwitch // nil for a port without one
}

// hop is a static route of a router, by destination.
type hop struct {
	prefix netip.Prefix
	next   netip.Addr
}

// nextHop returns the next hop of the route to an address, the zero Addr for none.
func (r *logicalRouter) nextHop(dst netip.Addr) netip.Addr {
	best := hop{}
	for _, h := range r.hops {
		if h.prefix.Contains(dst) && (!best.next.IsValid() || h.prefix.Bits() > best.prefix.Bits()) {
			best = h
		}
	}
	return best.next
}

// nat is an address translation of a router.
type nat struct {
	kind        string // dnat, snat, dnat_and_snat
	external    netip.Addr
	logical     string // an address or a prefix
	externalMAC string // of a distributed floating IP
	port        string
}

// Load reads the endpoints of all zones. Rows that make no sense are skipped.
func Load(ctx context.Context, zones []Zone) (*Names, error) {
	n := &Names{byKey: map[string][]int{}}
	for _, z := range zones {
		l := &loader{names: n, zone: &zone{switches: map[string]*logicalSwitch{}, nb: z.NB, sb: z.SB, networks: map[string][]string{},
			groups: map[string][]string{}, vips: map[netip.Addr][]string{}}}
		l.zone.learnedMACs = sync.OnceValue(l.zone.readMACBindings)
		if err := l.load(ctx, z); err != nil {
			return nil, err
		}
		n.zones = append(n.zones, l.zone)
	}
	return n, nil
}

// All returns all endpoints.
func (n *Names) All() []Endpoint { return n.endpoints }

// Senders returns the endpoints with a port of their own: those of logical switches that
// are bound in their zone, or nowhere. The ports that every node has are not among them.
func (n *Names) Senders() []Endpoint {
	return slices.DeleteFunc(slices.Clone(n.endpoints), func(e Endpoint) bool {
		return e.Kind != Pod && e.Kind != Port && e.Kind != NodePort || e.Localport || e.remote
	})
}

// Services returns the VIPs of the load balancers of all zones.
func (n *Names) Services() []Endpoint {
	return slices.DeleteFunc(slices.Clone(n.endpoints), func(e Endpoint) bool { return e.Kind != Service })
}
