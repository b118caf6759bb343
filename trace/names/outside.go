package names

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/internal/ovsdb"
)

// entry is a way into the logical networks: the router or the port of a provider network
// that answers for an address.
type entry struct {
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
func (b *builder) fromOutside(n *Names) error {
	var found []entry
	for _, z := range n.zones {
		found = append(found, z.entries(b.dst, b.q.To)...)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s: %w: no floating IP, no router and no port of a network with a localnet port has its address", b.q.To.Name, ErrNoEntry)
	}
	// A sender in one of the networks uses that one.
	slices.SortStableFunc(found, func(x, y entry) int { return cmp.Compare(x.distance(b.src), y.distance(b.src)) })
	e := found[0]
	for _, other := range found[1:] {
		if other.network != e.network || other.address != e.address {
			b.assume("the packet comes in by network %s, not %s", e.network.name, other.network.name)
		}
	}
	local := e.network.localnet[0]
	b.packet.PhysicalNetwork, b.vlan = local.network, local.tag
	for _, z := range n.zones {
		b.packet.Nodes = append(b.packet.Nodes, z.networks[local.network]...)
	}
	if len(b.packet.Nodes) == 0 {
		return fmt.Errorf("%s: %w: no node of the set has a bridge mapping for the physical network %q", b.q.To.Name, ErrNoEntry, local.network)
	}
	slices.Sort(b.packet.Nodes)
	b.packet.Nodes = slices.Compact(b.packet.Nodes)
	if e.address != b.dst {
		b.assume("from outside, %s has the address %s", b.q.To.Name, e.address)
	}
	b.dst, b.dstMAC = e.address, e.mac
	b.senderMAC(e)
	return nil
}

// distance returns 0 if an address is in the network of the entry, else 1.
func (e entry) distance(src netip.Addr) int {
	for _, p := range e.network.routers {
		if slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(src) }) {
			return 0
		}
	}
	return 1
}

// senderMAC chooses the source MAC address of a packet from outside: that of the sender if
// it is in the network itself, else that of a physical router.
func (b *builder) senderMAC(e entry) {
	b.srcMAC = outsideMAC
	if mac := e.zone.learned(e.network, b.src); mac != "" {
		b.srcMAC = mac
		return
	}
	if e.port != nil {
		next := e.port.router.nextHop(b.src)
		if mac := e.zone.learned(e.network, next); mac != "" {
			b.srcMAC = mac
			b.assume("the packet comes from the physical router %s, %s", next, mac)
			return
		}
	}
	b.assume("the packet's source MAC address is %s: that of the physical router is not known", outsideMAC)
}

// entries returns the ways from outside to an endpoint, the best first: its own floating
// IP, a router that has its address or its VIP, or a port of a provider network.
func (z *zone) entries(dst netip.Addr, to Endpoint) []entry {
	var found []entry
	for _, r := range z.routers {
		for _, t := range r.nat {
			if t.kind == "snat" || t.external != dst && (t.logical != dst.String() || t.port != "" && t.port != to.LogicalPort) {
				continue
			}
			if p := r.gatewayFor(t.external); p != nil {
				e := entry{z, p.network, p, t.external, p.mac}
				if t.externalMAC != "" {
					e.mac = t.externalMAC
				}
				found = append(found, e)
			}
		}
	}
	for _, r := range z.routers {
		for _, p := range r.ports {
			switch {
			case p.network == nil || len(p.network.localnet) == 0:
			case slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Addr() == dst }), z.hasVIP(r, dst):
				found = append(found, entry{z, p.network, p, dst, p.mac})
			}
		}
	}
	if s := z.switches[to.Switch]; s != nil && len(s.localnet) > 0 && to.MAC != "" {
		found = append(found, entry{z, s, nil, dst, to.MAC})
	}
	if len(found) == 0 {
		found = z.routed(to, dst)
	}
	return found
}

// routed returns the external ports of the nearest routers that lead to the destination's
// switch: a packet to the address itself comes in there if the physical network has a route.
func (z *zone) routed(to Endpoint, dst netip.Addr) []entry {
	start := z.switches[to.Switch]
	if start == nil {
		return nil
	}
	seen := map[*logicalSwitch]bool{start: true}
	for level := []*logicalSwitch{start}; len(level) > 0; {
		var found []entry
		var next []*logicalSwitch
		for _, s := range level {
			for _, inside := range s.routers {
				for _, p := range inside.router.ports {
					switch {
					case p.network == nil || seen[p.network]:
					case len(p.network.localnet) > 0:
						found = append(found, entry{z, p.network, p, dst, p.mac})
					default:
						seen[p.network] = true
						next = append(next, p.network)
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
	for _, p := range r.ports {
		if p.network == nil || len(p.network.localnet) == 0 {
			continue
		}
		if slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(external) }) {
			return p
		}
		outside = append(outside, p)
	}
	if len(outside) == 1 {
		return outside[0]
	}
	return nil
}

func (s *logicalSwitch) hasRouter(port string) bool {
	return slices.ContainsFunc(s.routers, func(p *routerPort) bool { return p.name == port })
}

// macOn returns the MAC address that an ARP request or a neighbor solicitation for an
// address on a switch is answered with: that of a port, or of a router that has the
// address, a floating IP or a VIP; "" if nothing answers.
func (z *zone) macOn(s *logicalSwitch, ip netip.Addr) string {
	for _, p := range s.routers {
		if slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Addr() == ip }) {
			return p.mac
		}
	}
	if mac := s.hosts[ip]; mac != "" {
		return mac
	}
	for _, p := range s.routers {
		for _, t := range p.router.nat {
			if t.external == ip {
				if t.externalMAC != "" {
					return t.externalMAC
				}
				return p.mac
			}
		}
		if z.hasVIP(p.router, ip) {
			return p.mac
		}
	}
	return ""
}

// learned returns the MAC address of an address that a router on a switch has learned, ""
// for none.
func (z *zone) learned(s *logicalSwitch, ip netip.Addr) string {
	for _, learned := range z.learnedMACs() {
		if learned.ip == ip && s.hasRouter(learned.port) {
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
	_ = each(z.sb, "MAC_Binding", func(row ovsdb.Row) {
		if ip, ok := parseAddress(row.String("ip")); ok && macOf(row.String("mac")) != "" {
			found = append(found, macBinding{row.String("logical_port"), ip, macOf(row.String("mac"))})
		}
	}, "logical_port", "ip", "mac")
	return found
}

// dhcp returns the options that OVN's DHCP server gives to a port, with the prefix of its
// subnet as "cidr".
func (z *zone) dhcp(e Endpoint, like netip.Addr) map[string]string {
	if z.nb == nil || e.dhcp == "" || !like.Is4() {
		return nil
	}
	row, ok, err := z.nb.Row("DHCP_Options", e.dhcp, "cidr", "options")
	if err != nil || !ok {
		return nil
	}
	options := row.Map("options")
	options["cidr"] = row.String("cidr")
	return options
}
