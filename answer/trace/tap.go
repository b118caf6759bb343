package trace

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
)

// tap is an interface at which packets were captured. It knows which packets the endpoints behind
// it sent, and which they received: a capture file does not say that.
type tap struct {
	session *Session
	node    *node // nil where FROM is outside: the capture is of its physical network
	port    *host.Port
	from    names.Endpoint
	behind  []names.Endpoint // the endpoints whose packets the interface carries
	// inside and outside are the MAC addresses of senders behind the interface, and of others,
	// as far as no database has them.
	inside, outside map[string]bool
}

// tapOf returns the interface of an endpoint. The port of a container or of a trunk has the
// interface of its parent.
func (s *Session) tapOf(from names.Endpoint) (*tap, error) {
	if from.Kind == names.External {
		return &tap{session: s, from: from}, nil
	}
	n := s.nodes[from.Node]
	carrier := cmp.Or(from.Parent, from.LogicalPort)
	if n == nil || carrier == "" {
		return nil, fmt.Errorf("%w: %s has no port on a node of the set", ErrQuestion, from.Name)
	}
	port, ok := n.Attached(carrier)
	if !ok {
		return nil, fmt.Errorf("%w: node %s has no interface with iface-id %s", ErrQuestion, n.Name, carrier)
	}
	found := &tap{session: s, node: n, port: port, from: from, inside: map[string]bool{}, outside: map[string]bool{}}
	for _, endpoint := range s.names.All() {
		if endpoint.Node == from.Node && (endpoint.LogicalPort == carrier || endpoint.Parent == carrier) && endpoint.LogicalPort != "" {
			found.behind = append(found.behind, endpoint)
		}
	}
	found.readLearned(carrier)
	return found, nil
}

// readLearned reads the MAC addresses that OVN has learned at its ports (the table FDB of
// ovn-sb(5)): only ports with unknown addresses have them.
func (t *tap) readLearned(carrier string) {
	zone := t.node.zone
	if zone.SB == nil || zone.rules == nil {
		return
	}
	for row, err := range zone.SB.Rows("FDB", "mac", "dp_key", "port_key") {
		if err != nil {
			return // OVN before 21.06 has no such table
		}
		datapath, _ := row.Int("dp_key")
		key, _ := row.Int("port_key")
		bound, ok := zone.rules.Port(uint64(datapath), uint64(key))
		switch mac := row.String("mac"); {
		case ok && bound.Name == carrier:
			t.inside[mac] = true
		case ok:
			t.outside[mac] = true
		}
	}
}

// holder returns the endpoint behind the interface whose packets have a VLAN tag, 0 for none.
func (t *tap) holder(tag int) (e names.Endpoint, ok bool) {
	at := slices.IndexFunc(t.behind, func(e names.Endpoint) bool { return e.Tag == tag && tag != 0 })
	if at < 0 { // it has no tag, or one of the sender's own
		at = slices.IndexFunc(t.behind, func(e names.Endpoint) bool { return e.LogicalPort == t.port.IfaceID })
	}
	if at < 0 {
		return names.Endpoint{}, false
	}
	return t.behind[at], true
}

// sender returns the endpoint behind the interface that a packet belongs to, and whether it sent
// the packet; ok is false if no endpoint there sends or receives such packets.
func (t *tap) sender(packet flow.Packet) (endpoint names.Endpoint, sent, ok bool) {
	if t.node == nil {
		sent, ok = t.isOfOutside(packet)
		return t.from, sent, ok
	}
	endpoint, ok = t.holder(tagOf(packet))
	if !ok {
		return endpoint, false, false
	}
	src, dst := packet.Get("dl_src"), packet.Get("dl_dst")
	if other, ok := t.owner(endpoint.Tag, src, packet.Get("nw_src")+packet.Get("ipv6_src")+packet.Get("arp_spa")); ok {
		return other, true, true
	}
	if other, ok := t.owner(endpoint.Tag, dst, destination(packet)+packet.Get("arp_tpa")); ok {
		return other, false, true
	}
	return endpoint, endpoint.Open && t.isFromInside(endpoint, src, dst), true
}

// isOfOutside reports whether a packet on a physical network is of FROM, which is outside, and
// whether FROM sent it: no database has its MAC address, or the address of the router before it.
func (t *tap) isOfOutside(packet flow.Packet) (sent, ok bool) {
	address := t.from.IPs[0].String()
	src, dst := cmp.Or(packet.Get("arp_spa"), packet.Get("ipv6_src"), packet.Get("nw_src")), cmp.Or(packet.Get("arp_tpa"), destination(packet))
	sent = src == address && len(t.session.names.WithMAC(packet.Get("dl_src"))) == 0
	return sent, sent || dst == address
}

// network returns the physical network on which FROM, which is outside, sent a packet.
func (t *tap) network(packet flow.Packet) (string, error) {
	to, err := t.session.names.Find(destination(packet), names.Filter{})
	if err == nil {
		if first, err := t.session.names.First(names.Question{From: t.from, To: to}); err == nil {
			return first.PhysicalNetwork, nil
		}
	}
	var all []string
	for _, n := range t.session.nodes {
		for _, networks := range n.Networks {
			all = append(all, networks...)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 1 {
		return "", fmt.Errorf("%w: the physical network of the packet to %s is not known: the databases do not show which of %s leads there", ErrQuestion, destination(packet), strings.Join(all, ", "))
	}
	return all[0], nil
}

// owner returns the endpoint behind the interface that has a VLAN tag, a MAC address and an IP
// address. Without one that has all, it is the port itself: virtual ports have the tag and the MAC
// address of their parent.
func (t *tap) owner(tag int, mac, ip string) (found names.Endpoint, ok bool) {
	for _, endpoint := range t.behind {
		isVirtual := endpoint.Parent != "" && endpoint.Tag == 0
		hasIP := slices.ContainsFunc(endpoint.IPs, func(a netip.Addr) bool { return a.String() == ip })
		switch {
		case endpoint.Tag != tag || endpoint.MAC != mac:
		case hasIP:
			return endpoint, true
		case !ok && !isVirtual:
			found, ok = endpoint, true
		}
	}
	return found, ok
}

// isFromInside reports whether a packet comes from behind an interface whose port may send
// with any MAC address: no other endpoint has the source, and the packet is not for the port.
func (t *tap) isFromInside(endpoint names.Endpoint, src, dst string) bool {
	switch {
	case t.isElsewhere(src):
		if !isMulticast(dst) && !t.isElsewhere(dst) {
			t.inside[dst] = true
		}
		return false
	case t.inside[src]:
		return true
	case dst == endpoint.MAC, t.inside[dst]:
		t.outside[src] = true
		return false
	case isMulticast(dst):
		return false
	}
	t.inside[src] = true
	return true
}

// isElsewhere reports whether an endpoint or a router that is not behind the interface has a MAC
// address.
func (t *tap) isElsewhere(mac string) bool {
	isBehind := func(e names.Endpoint) bool {
		return slices.ContainsFunc(t.behind, func(b names.Endpoint) bool { return b.LogicalPort == e.LogicalPort })
	}
	holders := t.session.names.WithMAC(mac)
	return t.outside[mac] || len(holders) > 0 && !slices.ContainsFunc(holders, isBehind)
}

// isAsked reports whether the question is about the packets of an endpoint: it is FROM, or
// FROM carries its packets.
func (t *tap) isAsked(endpoint names.Endpoint) bool {
	return endpoint.LogicalPort == t.from.LogicalPort || endpoint.Parent != "" && endpoint.Parent == t.from.LogicalPort
}

// addTag returns a packet as the interface carries it. One that was captured where the tag of
// a trunk's port is removed, in the instance, has none.
func (t *tap) addTag(packet flow.Packet) flow.Packet {
	shared := func(e names.Endpoint) bool { return e.Tag == 0 && e.MAC == t.from.MAC }
	if t.from.Tag == 0 || packet.IsTagged() || t.from.MAC == "" || slices.ContainsFunc(t.behind, shared) {
		return packet
	}
	if packet.Get("dl_src") == t.from.MAC || packet.Get("dl_dst") == t.from.MAC {
		packet = packet.Clone()
		packet.PushVLAN(strconv.Itoa(t.from.Tag), "0")
	}
	return packet
}

// receives reports whether a packet that was captured was sent to an endpoint behind the
// interface.
func (t *tap) receives(endpoint names.Endpoint, packet flow.Packet) bool {
	dst := packet.Get("dl_dst")
	return t.node == nil || strings.EqualFold(dst, endpoint.MAC) || t.inside[dst]
}
