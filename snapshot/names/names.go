// Package names finds the endpoints of a trace by the names that users know: pods,
// services, ports of neutron, instances, nodes, addresses. It reads them from the OVN
// databases and the OVS databases of a set of nodes, and makes the first packet between
// two of them.
package names

import (
	"context"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// Names are the endpoints of a set. It does not change once it is loaded, so that any
// number of questions can be asked at once.
type Names struct {
	endpoints []Endpoint
	byKey     map[string][]int // the endpoints that have a name or an address, by it
	byAlias   map[string][]int // ports by their interfaces and the UUIDs of their rows: where byKey has none
	zones     []*zone
	unknown   string // why packets that are made of these names may be others: see Packet.Unknown
}

// zone holds the objects of a zone on which its packets depend.
type zone struct {
	switches map[string]*logicalSwitch // by name
	routers  []*logicalRouter
	nb, sb   *file.Index
	networks map[string][]string     // the nodes by the physical networks that they reach
	groups   map[string][]string     // the UUIDs of load balancers by the UUID of their group
	vips     map[netip.Addr][]string // the UUIDs of load balancers by their VIPs
	// learnedMACs returns the addresses that its routers have learned. They are read when a
	// question first needs them.
	learnedMACs func() []macBinding
}

// logicalSwitch is a logical switch with what is attached to it.
type logicalSwitch struct {
	name     string
	given    string // the name that a user gave to its network, "" for none
	role     role   // of its user-defined network
	subnets  []netip.Prefix
	routers  []*routerPort
	localnet []localnet
	hosts    map[netip.Addr]string // the MAC addresses of its ports
	gateways []string              // the MAC addresses of routers of ML2/OVS, the one with the lowest address first
	// open is set if something on the switch may have an address that the databases don't
	// state. allowed lists further addresses, which port security allows.
	open    bool
	allowed []netip.Prefix
	node    bool // a node has a port on it
	outer   bool // it is connected with what is not in the databases: a physical network, another zone
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
	peer     string         // the port of another router that it is connected with, "" for none
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
	for _, hop := range r.hops {
		if hop.prefix.Contains(dst) && (!best.next.IsValid() || hop.prefix.Bits() > best.prefix.Bits()) {
			best = hop
		}
	}
	return best.next
}

// nat is an address translation of a router.
type nat struct {
	kind        string // dnat, snat, dnat_and_snat
	external    netip.Addr
	logical     string       // an address or a prefix
	covers      netip.Prefix // logical as a prefix
	externalMAC string       // of a distributed floating IP
	port        string
	conditional bool // it is not for all packets of the logical address
}

// Load reads the endpoints of all deployments. Rows that make no sense are skipped.
func Load(ctx context.Context, deployments []*snapshot.Deployment) (*Names, error) {
	names := &Names{byKey: map[string][]int{}, byAlias: map[string][]int{}}
	for _, deployment := range deployments {
		if err := names.add(ctx, deployment); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// noteUnknown notes which of the tables that the first packet of a question is made from are known in part, so that it may be another
// one. A database of which some tables were not printed is doubted as a whole where rows refer to them.
func (n *Names) noteUnknown(deployment *snapshot.Deployment) {
	for _, table := range []struct{ name, columns string }{
		{"Logical_Switch", "name ports external_ids other_config"}, {"Logical_Switch_Port", "name type addresses options external_ids port_security dhcpv4_options"},
		{"Logical_Router", "name ports nat static_routes"}, {"Logical_Router_Port", "name mac networks"},
		{"NAT", "type external_ip logical_ip external_mac logical_port"}, {"Load_Balancer", "vips protocol"}, {"DHCP_Options", "cidr options"},
	} {
		if _, part := deployment.NB.Known(table.name); n.unknown == "" && deployment.NB != nil && (part || strings.HasPrefix(table.name, "Logical_")) {
			n.unknown = deployment.NB.Lacks(table.name, true, strings.Fields(table.columns)...)
		}
	}
	if deployment.NB == nil && deployment.SB != nil && n.unknown == "" {
		n.unknown = deployment.SB.Lacks("Port_Binding", true, "logical_port", "type", "mac", "datapath")
	}
	if n.unknown != "" && !strings.HasPrefix(n.unknown, partly) {
		n.unknown = partly + n.unknown + " is not known"
	}
}

// partly begins the sentence about what is not known.
const partly = "the packet is made from tables of OVN that are known in part: "

// add reads the endpoints of a deployment.
func (n *Names) add(ctx context.Context, deployment *snapshot.Deployment) error {
	loader := &loader{names: n, zone: &zone{switches: map[string]*logicalSwitch{}, nb: deployment.NB, sb: deployment.SB, networks: map[string][]string{},
		vips: map[netip.Addr][]string{}}}
	loader.zone.learnedMACs = sync.OnceValue(loader.zone.readMACBindings)
	deployment, done, err := withShown(ctx, deployment)
	if err != nil {
		return err
	}
	defer done()
	n.noteUnknown(deployment)
	if err := loader.load(ctx, deployment); err != nil {
		return err
	}
	n.zones = append(n.zones, loader.zone)
	return nil
}

// All returns all endpoints.
func (n *Names) All() []Endpoint { return n.endpoints }

// Senders returns the endpoints with a port of their own: ports of logical switches that
// are bound in their zone, or nowhere. It leaves out ports that every node has. It leaves out ports that
// only ovn-kubernetes itself uses: a node's in a user-defined network, and a pod's in the default network
// if the pod has a primary network.
func (n *Names) Senders() []Endpoint {
	return slices.DeleteFunc(slices.Clone(n.endpoints), func(endpoint Endpoint) bool {
		return endpoint.Kind != Pod && endpoint.Kind != Port && endpoint.Kind != NodePort || endpoint.Localport || endpoint.remote || n.isInternal(endpoint)
	})
}

// Services returns the VIPs of the load balancers of all zones.
func (n *Names) Services() []Endpoint {
	return slices.DeleteFunc(slices.Clone(n.endpoints), func(endpoint Endpoint) bool { return endpoint.Kind != Service })
}

// Matches reports whether a glob pattern matches a name. A * stands for any characters, also slashes.
func Matches(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}
