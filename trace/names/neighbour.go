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
	for _, e := range n.WithMAC(mac) {
		if e.Kind != RouterPort {
			continue
		}
		z := n.zones[e.zone]
		at := slices.IndexFunc(z.routers, func(r *logicalRouter) bool { return r.name == e.Switch })
		if at < 0 {
			return ""
		}
		for _, p := range z.routers[at].ports {
			if p.name != e.LogicalPort {
				continue
			}
			if p.network == nil || !z.isVacant(p.network, ip) {
				return ""
			}
			found = p.network.describe(ip)
		}
	}
	return found
}

// isVacant reports whether nothing on a switch can have an address.
func (z *zone) isVacant(s *logicalSwitch, ip netip.Addr) bool {
	allows := func(p netip.Prefix) bool { return p.Contains(ip) }
	return !s.open && len(s.localnet) == 0 && !slices.ContainsFunc(s.allowed, allows) && z.macOn(s, ip) == ""
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
	for _, p := range s.routers {
		all = append(all, p.networks...)
	}
	for _, p := range all {
		if p.Contains(ip) && p.Bits() < ip.BitLen() && p.Bits() > 0 {
			return p.Masked(), true
		}
	}
	return netip.Prefix{}, false
}

// inside describes the logical network that an address is in, "" for none: one that is not
// connected to a physical network.
func (n *Names) inside(ip netip.Addr) string {
	var found []string
	for _, z := range n.zones {
		for _, s := range z.switches {
			if _, ok := s.subnetOf(ip); ok && len(s.localnet) == 0 {
				found = append(found, s.describe(ip))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// Outside returns the endpoint whose address a user took for one outside: a floating IP, a
// VIP, or the address of a router on a provider network. ok is false if there is none; the
// error is that of Find.
func (n *Names) Outside(name string, filter Filter) (e Endpoint, ok bool, err error) {
	found := n.matching(name, filter)
	known := func(e Endpoint) bool {
		return e.Kind == FloatingIP || e.Kind == Service || e.Kind == RouterPort && n.isOuter(e)
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(e Endpoint) bool { return !known(e) }) {
		return Endpoint{}, false, nil
	}
	e, err = n.Find(name, filter)
	return e, err == nil, err
}

// isOuter reports whether a router's port is on a network with a localnet port.
func (n *Names) isOuter(e Endpoint) bool {
	for _, r := range n.zones[e.zone].routers {
		for _, p := range r.ports {
			if p.name == e.LogicalPort && p.network != nil && len(p.network.localnet) > 0 {
				return true
			}
		}
	}
	return false
}
