package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Vacant describes the network of the router's port with a name, if nothing on it has an address: all
// that is on the network is in the databases. It returns "" if something may have the address.
func (n *Names) Vacant(port string, ip netip.Addr) (network string) {
	for _, at := range n.routerPorts(port) {
		if at.network == nil || !at.zone.isVacant(at.network, ip) {
			return ""
		}
		network = at.network.describe(ip)
	}
	return network
}

// Own reports whether the router's port with a name has the address itself. Nothing answers the
// request of a router for its own address: the switch sends it back to the port, from which it came.
func (n *Names) Own(port string, ip netip.Addr) bool {
	return slices.ContainsFunc(n.routerPorts(port), func(at routerPortOf) bool {
		return slices.ContainsFunc(at.networks, func(network netip.Prefix) bool { return network.Addr() == ip })
	})
}

// Beyond describes where a router's port with a name sends a request for an address: the network
// of the port, or the port itself where its peer is a router. It returns "" if no router has the
// port, or if the routers of several zones have it.
func (n *Names) Beyond(port string, ip netip.Addr) string {
	switch all := n.routerPorts(port); {
	case len(all) != 1:
		return ""
	case all[0].network == nil:
		return "router port " + port
	default:
		return all[0].network.describe(ip)
	}
}

// routerPortOf is a router's port of a zone.
type routerPortOf struct {
	*routerPort
	zone *zone
}

// routerPorts returns the routers' ports with a name: several zones may have one each.
func (n *Names) routerPorts(name string) (found []routerPortOf) {
	for _, zone := range n.zones {
		for _, router := range zone.routers {
			for _, port := range router.ports {
				if port.name == name {
					found = append(found, routerPortOf{port, zone})
				}
			}
		}
	}
	return found
}

// isVacant reports whether nothing on a switch can have an address.
func (z *zone) isVacant(ls *logicalSwitch, ip netip.Addr) bool {
	allows := func(prefix netip.Prefix) bool { return prefix.Contains(ip) }
	return !ls.open && len(ls.localnet) == 0 && !slices.ContainsFunc(ls.allowed, allows) && z.macOn(ls, ip) == ""
}

// describe names the network with its subnet that contains an address.
func (s *logicalSwitch) describe(ip netip.Addr) string {
	name := s.given
	if name == "" {
		name = s.name
	}
	if subnet, ok := s.subnetOf(ip); ok {
		return fmt.Sprintf("network %s (%s)", name, subnet)
	}
	return "network " + name
}

// subnetOf returns the subnet of a switch that contains an address.
func (s *logicalSwitch) subnetOf(ip netip.Addr) (subnet netip.Prefix, ok bool) {
	all := slices.Clone(s.subnets)
	for _, port := range s.routers {
		all = append(all, port.networks...)
	}
	for _, prefix := range all {
		if prefix.Contains(ip) && prefix.Bits() < ip.BitLen() && prefix.Bits() > 0 {
			return prefix.Masked(), true
		}
	}
	return netip.Prefix{}, false
}

// Enclosure is why no packet from outside gets to a logical network.
type Enclosure struct {
	Network string // the network, as users know it
	// Translated reports that routers of OVN translate the network's addresses in all packets that leave it:
	// nothing outside has a route to them. Else nothing that is on the network forwards packets.
	Translated bool
}

// Enclosed returns why no packet from outside gets to an endpoint with an address. ok is false if a packet
// may get there.
func (n *Names) Enclosed(ip netip.Addr) (found Enclosure, ok bool) {
	network, isHeld := n.networkAround(ip), len(n.WithIP(ip)) > 0
	isOpen := func(ls *logicalSwitch) bool { return !ls.isClosed() }
	found = Enclosure{Network: network, Translated: n.isTranslated(ip)}
	return found, network != "" && isHeld && (found.Translated || !slices.ContainsFunc(n.networksAround(ip), isOpen))
}

// networkAround describes the logical network that an address is in, "" for none: one that is not
// connected to a physical network.
func (n *Names) networkAround(ip netip.Addr) string {
	around := n.networksAround(ip)
	if len(around) == 0 {
		return ""
	}
	return slices.MinFunc(around, func(a, b *logicalSwitch) int { return strings.Compare(a.name, b.name) }).describe(ip)
}

// networksAround returns the networks that an address is in, nil if one of them is connected to a physical
// network.
func (n *Names) networksAround(ip netip.Addr) (found []*logicalSwitch) {
	for _, zone := range n.zones {
		for _, ls := range zone.switches {
			if _, ok := ls.subnetOf(ip); !ok && ls.hosts[ip] == "" {
				continue
			}
			if len(ls.localnet) > 0 {
				return nil
			}
			found = append(found, ls)
		}
	}
	return found
}

// isClosed reports whether nothing on a switch forwards packets: it has no router, and port security drops
// what its ports send with the addresses of others.
func (s *logicalSwitch) isClosed() bool {
	isWide := func(prefix netip.Prefix) bool { return !prefix.IsSingleIP() }
	return !s.open && len(s.routers) == 0 && !slices.ContainsFunc(s.allowed, isWide)
}

// isTranslated reports whether a router translates an address in all packets that leave the router.
func (n *Names) isTranslated(ip netip.Addr) bool {
	for _, zone := range n.zones {
		for _, router := range zone.routers {
			if slices.ContainsFunc(router.nat, func(nat nat) bool { return nat.kind == "snat" && !nat.conditional && nat.covers.Contains(ip) }) {
				return true
			}
		}
	}
	return false
}

// macOnWire returns the MAC address of a port of any zone that has an address on the physical network and
// VLAN of a switch, "" for none: each zone has only its own ports of such a switch.
func (n *Names) macOnWire(ls *logicalSwitch, ip netip.Addr) string {
	for _, zone := range n.zones {
		for _, other := range zone.switches {
			if !slices.ContainsFunc(other.localnet, func(at localnet) bool { return slices.Contains(ls.localnet, at) }) {
				continue
			}
			if mac := zone.macOn(other, ip); mac != "" {
				return mac
			}
		}
	}
	return ""
}

// Outside returns the endpoint whose address a user took for one outside: a floating IP, a
// VIP, or the address of a router on a provider network. ok is false if there is none; the
// error comes from Find.
func (n *Names) Outside(name string, filter Filter) (endpoint Endpoint, ok bool, err error) {
	found := n.matching(name, filter)
	known := func(endpoint Endpoint) bool {
		return endpoint.Kind == FloatingIP || endpoint.Kind == Service || endpoint.Kind == RouterPort && n.isOuter(endpoint)
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(endpoint Endpoint) bool { return !known(endpoint) }) {
		return Endpoint{}, false, nil
	}
	endpoint, err = n.Find(name, filter)
	return endpoint, err == nil, err
}

// isOuter reports whether a router's port is on a network with a localnet port.
func (n *Names) isOuter(endpoint Endpoint) bool {
	for _, router := range n.zones[endpoint.zone].routers {
		for _, port := range router.ports {
			if port.name == endpoint.LogicalPort && port.network != nil && len(port.network.localnet) > 0 {
				return true
			}
		}
	}
	return false
}

// Detached describes the logical network of an endpoint's address to which neither nodes nor machines outside
// have a route: no node has a port in it, nor in a network that routers connect with it; and where
// these lead to a physical network, a router translates the address in all packets that leave. It
// returns "" for another address. The networks of VPCs of kube-ovn other than the default one are
// such networks.
func (n *Names) Detached(ip netip.Addr) string {
	if len(n.WithIP(ip)) == 0 {
		return ""
	}
	found := ""
	for _, zone := range n.zones {
		for _, ls := range zone.switches {
			if _, ok := ls.subnetOf(ip); !ok {
				continue
			}
			nodes, physical := zone.reach(ls)
			if len(ls.localnet) > 0 || nodes || physical && !n.isTranslated(ip) {
				return ""
			}
			found = ls.describe(ip)
		}
	}
	return found
}

// reach reports whether a node has a port in one of the networks that routers connect with a
// network, and whether one of them is connected with something that is not in the databases.
func (z *zone) reach(from *logicalSwitch) (nodes, physical bool) {
	seen, next := map[*logicalSwitch]bool{from: true}, []*logicalSwitch{from}
	passed := map[*logicalRouter]bool{}
	var enter func(router *logicalRouter)
	enter = func(router *logicalRouter) {
		if passed[router] {
			return
		}
		passed[router] = true
		for _, port := range router.ports {
			if port.network != nil && !seen[port.network] {
				seen[port.network], next = true, append(next, port.network)
			}
			if peer := z.routerWith(port.peer); peer != nil {
				enter(peer)
			}
		}
	}
	for ; len(next) > 0; next = next[1:] {
		nodes, physical = nodes || next[0].node, physical || next[0].outer
		for _, port := range next[0].routers {
			enter(port.router)
		}
	}
	return nodes, physical
}

// routerWith returns the router that has a port with a name, nil for none.
func (z *zone) routerWith(port string) *logicalRouter {
	for _, router := range z.routers {
		if port != "" && slices.ContainsFunc(router.ports, func(p *routerPort) bool { return p.name == port }) {
			return router
		}
	}
	return nil
}
