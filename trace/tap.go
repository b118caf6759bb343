package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/flow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/names"
)

// tap is an interface at which packets were captured. It distinguishes the packets that the
// endpoints behind it sent from those that they received, which a capture file does not.
type tap struct {
	session *Session
	node    *node
	port    *host.Port
	from    names.Endpoint
	behind  []names.Endpoint // the endpoints whose packets the interface carries
	// inside and outside are the MAC addresses of senders behind the interface, and of others,
	// as far as no database has them.
	inside, outside map[string]bool
}

// tapOf returns the interface of an endpoint. That of the port of a container or of a trunk
// is the interface of its parent.
func (s *Session) tapOf(from names.Endpoint) (*tap, error) {
	n := s.nodes[from.Node]
	carrier := cmp.Or(from.Parent, from.LogicalPort)
	if n == nil || carrier == "" {
		return nil, fmt.Errorf("%w: %s has no port on a node of the set", ErrQuestion, from.Name)
	}
	port, ok := n.Attached(carrier)
	if !ok {
		return nil, fmt.Errorf("%w: node %s has no interface with iface-id %s", ErrQuestion, n.Name, carrier)
	}
	t := &tap{session: s, node: n, port: port, from: from, inside: map[string]bool{}, outside: map[string]bool{}}
	for _, e := range s.names.All() {
		if e.Node == from.Node && (e.LogicalPort == carrier || e.Parent == carrier) && e.LogicalPort != "" {
			t.behind = append(t.behind, e)
		}
	}
	t.readLearned(carrier)
	return t, nil
}

// readLearned reads the MAC addresses that OVN has learned at its ports (the table FDB of
// ovn-sb(5)): those of ports with unknown addresses.
func (t *tap) readLearned(carrier string) {
	z := t.node.zone
	if z.sb == nil || z.rules == nil {
		return
	}
	for row, err := range z.sb.Rows("FDB", "mac", "dp_key", "port_key") {
		if err != nil {
			return // OVN before 21.06 has no such table
		}
		datapath, _ := row.Int("dp_key")
		key, _ := row.Int("port_key")
		bound, ok := z.rules.Port(uint64(datapath), uint64(key))
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

// sender returns the endpoint behind the interface that a packet is of, and whether it sent
// the packet; ok is false if no endpoint there sends or receives such packets.
func (t *tap) sender(p flow.Packet) (e names.Endpoint, sent, ok bool) {
	e, ok = t.holder(tagOf(p))
	if !ok {
		return e, false, false
	}
	src, dst := p.Get("dl_src"), p.Get("dl_dst")
	for _, other := range t.behind { // several endpoints, such as virtual ones, may share a tag
		switch {
		case other.Tag != e.Tag:
		case other.MAC == src:
			return other, true, true
		case other.MAC == dst:
			return other, false, true
		}
	}
	return e, e.Open && t.isFromInside(e, src, dst), true
}

// isFromInside reports whether a packet comes from behind an interface whose port may send
// with any MAC address: no other endpoint has the source, and the packet is not for the port.
func (t *tap) isFromInside(e names.Endpoint, src, dst string) bool {
	switch {
	case t.isElsewhere(src):
		if !isMulticast(dst) && !t.isElsewhere(dst) {
			t.inside[dst] = true
		}
		return false
	case t.inside[src]:
		return true
	case dst == e.MAC, t.inside[dst]:
		t.outside[src] = true
		return false
	case isMulticast(dst):
		return false
	}
	t.inside[src] = true
	return true
}

// isElsewhere reports whether a MAC address is that of an endpoint or a router that is not
// behind the interface.
func (t *tap) isElsewhere(mac string) bool {
	isBehind := func(e names.Endpoint) bool {
		return slices.ContainsFunc(t.behind, func(b names.Endpoint) bool { return b.LogicalPort == e.LogicalPort })
	}
	holders := t.session.names.WithMAC(mac)
	return t.outside[mac] || len(holders) > 0 && !slices.ContainsFunc(holders, isBehind)
}

// isAsked reports whether the question is about the packets of an endpoint: it is FROM, or
// FROM carries its packets.
func (t *tap) isAsked(e names.Endpoint) bool {
	return e.LogicalPort == t.from.LogicalPort || e.Parent != "" && e.Parent == t.from.LogicalPort
}

// tagged returns a packet as the interface carries it. One that was captured where the tag of
// a trunk's port is removed, in the instance, has none.
func (t *tap) tagged(p flow.Packet) flow.Packet {
	shared := func(e names.Endpoint) bool { return e.Tag == 0 && e.MAC == t.from.MAC }
	if t.from.Tag == 0 || p.IsTagged() || t.from.MAC == "" || slices.ContainsFunc(t.behind, shared) {
		return p
	}
	if p.Get("dl_src") == t.from.MAC || p.Get("dl_dst") == t.from.MAC {
		p = p.Clone()
		p.PushVLAN(strconv.Itoa(t.from.Tag), "0")
	}
	return p
}

// tagOf returns the outer VLAN tag of a packet, 0 for none.
func tagOf(p flow.Packet) int {
	tag, _ := strconv.Atoi(p.Get("dl_vlan"))
	return tag
}

// receives reports whether a packet that was captured was sent to an endpoint behind the
// interface.
func (t *tap) receives(e names.Endpoint, p flow.Packet) bool {
	dst := p.Get("dl_dst")
	return strings.EqualFold(dst, e.MAC) || t.inside[dst]
}
