package names

import (
	"fmt"
	"net/netip"
	"slices"
)

// Vacant describes the network of a router's port, with the MAC address of the port, on which
// nothing has an address: all that is on it is in the databases. It returns "" if something may
// have the address.
func (n *Names) Vacant(mac string, ip netip.Addr) string {
	found := ""
	for _, endpoint := range n.WithMAC(mac) {
		if endpoint.Kind != RouterPort {
			continue
		}
		zone := n.zones[endpoint.zone]
		at := slices.IndexFunc(zone.routers, func(router *logicalRouter) bool { return router.name == endpoint.Switch })
		if at < 0 {
			return ""
		}
		for _, port := range zone.routers[at].ports {
			if port.name != endpoint.LogicalPort {
				continue
			}
			if port.network == nil || !zone.isVacant(port.network, ip) {
				return ""
			}
			found = port.network.describe(ip)
		}
	}
	return found
}

// Beyond describes where a router's port with a name sends a request for an address: the network
// of the port, or the port itself where its peer is a router. It returns "" if no router has the
// port, or if the routers of several zones have it.
func (n *Names) Beyond(port string, ip netip.Addr) string {
	found := ""
	for _, zone := range n.zones {
		for _, router := range zone.routers {
			for _, p := range router.ports {
				switch {
				case p.name != port:
				case found != "":
					return ""
				case p.network == nil:
					found = "router port " + p.name
				default:
					found = p.network.describe(ip)
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

// networkAround describes the logical network that an address is in, "" for none: one that is not
// connected to a physical network.
func (n *Names) networkAround(ip netip.Addr) string {
	var found []string
	for _, zone := range n.zones {
		for _, ls := range zone.switches {
			if _, ok := ls.subnetOf(ip); ok && len(ls.localnet) == 0 {
				found = append(found, ls.describe(ip))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// Translated describes the logical network of an address that a router translates in all packets that
// leave the network: nothing outside has a route to such an address. It returns "" for another address.
func (n *Names) Translated(ip netip.Addr) string {
	for _, zone := range n.zones {
		for _, router := range zone.routers {
			if slices.ContainsFunc(router.nat, func(nat nat) bool { return nat.kind == "snat" && !nat.conditional && nat.covers.Contains(ip) }) {
				return n.networkAround(ip)
			}
		}
	}
	return ""
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
