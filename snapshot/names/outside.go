package names

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// entrance is a way into the logical networks: the router or the port of a provider network
// that answers for an address.
type entrance struct {
	zone    *zone
	network *logicalSwitch // with a localnet port
	port    *routerPort    // nil for a port of the network itself
	address netip.Addr     // of the packet: a floating IP stands for the port behind it
	mac     string
}

// outsideMAC is the source of packets whose sender's MAC address is unknown. It is locally
// administered, so that it belongs to no vendor's device.
const outsideMAC = "02:00:00:00:00:01"

// fromOutside starts the packet in the physical network through which the destination is
// reached.
func (b *builder) fromOutside(names *Names) error {
	var found []entrance
	for _, zone := range names.zones {
		found = append(found, zone.entries(b.dst, b.q.To)...)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s: %w: no floating IP, no router and no port of a network with a localnet port has its address", b.q.To.Name, ErrNoEntry)
	}
	// A sender in one of the networks uses that one.
	slices.SortStableFunc(found, func(x, y entrance) int { return cmp.Compare(x.distance(b.src), y.distance(b.src)) })
	entry := found[0]
	for _, other := range found[1:] {
		if !other.isAs(entry) {
			b.assume("the packet comes in by network %s, not %s", entry.network.name, other.network.name)
		}
	}
	local := entry.network.localnet[0]
	b.packet.PhysicalNetwork, b.vlan = local.network, local.tag
	for _, zone := range names.zones {
		b.packet.Nodes = append(b.packet.Nodes, zone.networks[local.network]...)
	}
	if len(b.packet.Nodes) == 0 {
		return fmt.Errorf("%s: %w: no node of the set has a bridge mapping for the physical network %q", b.q.To.Name, ErrNoEntry, local.network)
	}
	slices.Sort(b.packet.Nodes)
	b.packet.Nodes = slices.Compact(b.packet.Nodes)
	if entry.address != b.dst {
		b.assume("from outside, %s has the address %s", b.q.To.Name, entry.address)
	}
	b.dst, b.dstMAC = entry.address, entry.mac
	b.senderMAC(entry)
	return nil
}

// isAs reports whether a packet is the same by either entry: the routers of several networks may share a
// MAC address on one physical network.
func (e entrance) isAs(other entrance) bool {
	return e.network.localnet[0] == other.network.localnet[0] && e.address == other.address && e.mac == other.mac
}

// distance returns 0 if an address is in the network of the entry, else 1.
func (e entrance) distance(src netip.Addr) int {
	for _, port := range e.network.routers {
		if slices.ContainsFunc(port.networks, func(prefix netip.Prefix) bool { return prefix.Contains(src) }) {
			return 0
		}
	}
	return 1
}

// senderMAC chooses the source MAC address of a packet from outside: the sender's if
// it is in the network itself, else a physical router's.
func (b *builder) senderMAC(entry entrance) {
	b.srcMAC = outsideMAC
	if mac := entry.zone.learnedMAC(entry.network, b.src); mac != "" {
		b.srcMAC = mac
		return
	}
	if entry.port != nil {
		next := entry.port.router.nextHop(b.src)
		if mac := entry.zone.learnedMAC(entry.network, next); mac != "" {
			b.srcMAC = mac
			b.assume("the packet comes from the physical router %s, %s", next, mac)
			return
		}
	}
	b.assume("the packet's source MAC address is %s: the physical router's is not known", outsideMAC)
}

// entries returns the ways from outside to an endpoint, the best first: its own floating
// IP, a router that has its address or its VIP, or a port of a provider network.
func (z *zone) entries(dst netip.Addr, to Endpoint) []entrance {
	var found []entrance
	for _, router := range z.routers {
		for _, nat := range router.nat {
			if nat.kind == "snat" || nat.external != dst && (nat.logical != dst.String() || nat.port != "" && nat.port != to.LogicalPort) {
				continue
			}
			if port := router.gatewayFor(nat.external); port != nil {
				entry := entrance{z, port.network, port, nat.external, port.mac}
				if nat.externalMAC != "" {
					entry.mac = nat.externalMAC
				}
				found = append(found, entry)
			}
		}
	}
	for _, router := range z.routers {
		for _, port := range router.ports {
			switch {
			case port.network == nil || len(port.network.localnet) == 0:
			case slices.ContainsFunc(port.networks, func(prefix netip.Prefix) bool { return prefix.Addr() == dst }), z.hasVIP(router, dst):
				found = append(found, entrance{z, port.network, port, dst, port.mac})
			}
		}
	}
	if ls := z.switches[to.Switch]; ls != nil && len(ls.localnet) > 0 && to.MAC != "" {
		found = append(found, entrance{z, ls, nil, dst, to.MAC})
	}
	if len(found) == 0 {
		found = z.routedEntries(to, dst)
	}
	return found
}

// routedEntries returns the external ports of the nearest routers that lead to the destination's
// switch: a packet to the address itself comes in there if the physical network has a route.
func (z *zone) routedEntries(to Endpoint, dst netip.Addr) []entrance {
	start := z.switches[to.Switch]
	if start == nil {
		return nil
	}
	seen := map[*logicalSwitch]bool{start: true}
	for level := []*logicalSwitch{start}; len(level) > 0; {
		var found []entrance
		var next []*logicalSwitch
		for _, ls := range level {
			for _, inside := range ls.routers {
				for _, port := range inside.router.ports {
					switch {
					case port.network == nil || seen[port.network]:
					case len(port.network.localnet) > 0:
						found = append(found, entrance{z, port.network, port, dst, port.mac})
					default:
						seen[port.network] = true
						next = append(next, port.network)
					}
				}
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}

// gatewayFor returns the port of a router in whose network an external address is, or else
// its only port in a network with a localnet port.
func (r *logicalRouter) gatewayFor(external netip.Addr) *routerPort {
	var outside []*routerPort
	for _, port := range r.ports {
		if port.network == nil || len(port.network.localnet) == 0 {
			continue
		}
		if slices.ContainsFunc(port.networks, func(prefix netip.Prefix) bool { return prefix.Contains(external) }) {
			return port
		}
		outside = append(outside, port)
	}
	if len(outside) == 1 {
		return outside[0]
	}
	return nil
}

func (s *logicalSwitch) hasRouter(port string) bool {
	return slices.ContainsFunc(s.routers, func(p *routerPort) bool { return p.name == port })
}

// macOn returns the MAC address in the answer to an ARP request or a neighbor solicitation for an
// address on a switch: the MAC address of a port, or of a router that has the address, a floating IP
// or a VIP; "" if nothing answers.
func (z *zone) macOn(ls *logicalSwitch, ip netip.Addr) string {
	for _, port := range ls.routers {
		if slices.ContainsFunc(port.networks, func(prefix netip.Prefix) bool { return prefix.Addr() == ip }) {
			return port.mac
		}
	}
	if mac := ls.hosts[ip]; mac != "" {
		return mac
	}
	for _, port := range ls.routers {
		for _, nat := range port.router.nat {
			if nat.external == ip {
				if nat.externalMAC != "" {
					return nat.externalMAC
				}
				return port.mac
			}
		}
		if z.hasVIP(port.router, ip) {
			return port.mac
		}
	}
	return ""
}

// learnedMAC returns the MAC address of an address that a router on a switch has learned, ""
// for none.
func (z *zone) learnedMAC(ls *logicalSwitch, ip netip.Addr) string {
	for _, learned := range z.learnedMACs() {
		if learned.ip == ip && ls.hasRouter(learned.port) {
			return learned.mac
		}
	}
	return ""
}

// macBinding is an address that a router has learned.
type macBinding struct {
	port string // of the router
	ip   netip.Addr
	mac  string
}

// readMACBindings returns the addresses that the routers of a zone have learned.
func (z *zone) readMACBindings() []macBinding {
	var found []macBinding
	// Without them, an answer assumes more. So an error costs no more than that.
	_ = z.sb.Each("MAC_Binding", func(row ovsdb.Row) {
		if ip, ok := ovn.ParseAddress(row.String("ip")); ok && ovn.MAC(row.String("mac")) != "" {
			found = append(found, macBinding{row.String("logical_port"), ip, ovn.MAC(row.String("mac"))})
		}
	}, "logical_port", "ip", "mac")
	return found
}

// dhcp returns the options that OVN's DHCP server gives to a port, with the prefix of its
// subnet as "cidr".
func (z *zone) dhcp(endpoint Endpoint, like netip.Addr) map[string]string {
	if z.nb == nil || endpoint.dhcp == "" || !like.Is4() {
		return nil
	}
	row, ok, err := z.nb.Row("DHCP_Options", endpoint.dhcp, "cidr", "options")
	if err != nil || !ok {
		return nil
	}
	options := row.Map("options")
	options["cidr"] = row.String("cidr")
	return options
}
