package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
)

// outside returns why it is not known what becomes of a packet that came out of a port,
// "" if that is known: a host that no replica stands for may forward it.
func (w *writer) outside(h *follow.Hop, b follow.Branch) string {
	mac := b.Packet.Get("dl_dst")
	if b.Kind != follow.Delivered || b.Port == nil || w.arrives(h, b) || w.isAnswer(h, b) || isMulticast(mac) {
		return ""
	}
	if len(b.Networks) > 0 {
		return w.beyond(b, mac)
	}
	e, ok := w.receiver(b)
	if !ok || e.MAC != mac || destination(b.Packet) == "" || hasAddress(b.Packet, e) {
		return ""
	}
	return fmt.Sprintf("the packet arrives at %s (port %s), and %s is no address of it: whether it forwards the packet is not known", e.Name, b.Port.Name, destination(b.Packet))
}

// beyond returns why it is not known what becomes of a packet on a physical network.
func (w *writer) beyond(b follow.Branch, mac string) string {
	leaves := fmt.Sprintf("the packet leaves by port %s of %s for the MAC address %s on the network %s", b.Port.Name, b.Port.Bridge, mac, strings.Join(b.Networks, ", "))
	if len(w.names.WithMAC(mac)) == 0 {
		return leaves + ", which no port in the databases has"
	}
	if whose := w.elsewhere(mac); whose != "" {
		return leaves + whose
	}
	return ""
}

// elsewhere says whose a MAC address is that no collected node has, as a text to append; ""
// if a collected node has it, or if no port in the databases does.
func (w *writer) elsewhere(mac string) string {
	holders := w.names.WithMAC(mac)
	if len(holders) == 0 || slices.ContainsFunc(holders, isHere) {
		return ""
	}
	e := holders[0]
	if e.Chassis == "" {
		return ": that of " + e.Name + ", which is not connected to Open vSwitch"
	}
	return ": that of " + e.Name + " on node " + e.Chassis + ", which was not captured"
}

// strays returns why it is not known what becomes of a packet that starts on a physical
// network, "" if the collected nodes show it.
func (w *writer) strays(root *follow.Hop) string {
	networks := []string{w.start.Network}
	if n := w.nodes[w.start.Node]; n != nil {
		if port, ok := n.Port(w.start.InPort); ok {
			networks = n.NetworksOf(port)
		}
	}
	mac := root.Packet.Get("dl_dst")
	whose := w.elsewhere(mac)
	if len(networks) == 0 || whose == "" || isMulticast(mac) {
		return ""
	}
	return fmt.Sprintf("the packet starts on the network %s for the MAC address %s%s", strings.Join(networks, ", "), mac, whose)
}

// isWire reports whether a packet left by a physical network on which collected nodes show what
// becomes of it: the path goes on there.
func (w *writer) isWire(h *follow.Hop, b follow.Branch) bool {
	mac := b.Packet.Get("dl_dst")
	return len(b.Networks) > 0 && !w.arrives(h, b) && !isMulticast(mac) && w.beyond(b, mac) == ""
}

// isHere reports whether the collected nodes show what becomes of a packet to an endpoint:
// one of them has it, or each chassis, or none.
func isHere(e names.Endpoint) bool {
	return !e.External && (e.Node != "" || e.Chassis == "")
}

// isOfOthers reports whether a packet got over a physical network to a node whose replica can't
// be asked, and other nodes have its MAC address. Such a node is as one that was not captured.
func (w *writer) isOfOthers(b follow.Branch) bool {
	if b.Absent == "" || len(b.Networks) == 0 {
		return false
	}
	holders := w.names.WithMAC(b.Packet.Get("dl_dst"))
	mayBeThere := func(e names.Endpoint) bool { return e.Node == "" || e.Node == b.Absent }
	return len(holders) > 0 && !slices.ContainsFunc(holders, mayBeThere)
}

// isMulticast reports whether a MAC address is that of a group.
func isMulticast(mac string) bool {
	return len(mac) > 1 && strings.ContainsRune("13579bdf", rune(mac[1]))
}

// destined returns for which port a packet is that went to a chassis that was not captured, or
// whose replica can't be asked, as a text to append; "" if the southbound database does not show
// it. OVN's tunnels carry the keys of the datapath and of its output port (ovn-architecture(7),
// Tunnel Encapsulations).
func (w *writer) destined(h *follow.Hop, b follow.Branch) string {
	if b.Kind != follow.Remote && b.Absent == "" || b.Tunnel == nil || b.Tunnel.Type != "geneve" {
		return ""
	}
	z := w.nodes[h.Node].zone
	if z.rules == nil || len(w.chassisOf(h.Node, b.Tunnel.Dst)) == 0 {
		return ""
	}
	const class, kind, outPort = "0x102", "0x80", 0xffff
	for _, o := range b.Tunnel.Options {
		datapath, err := strconv.ParseUint(b.Tunnel.ID, 0, 24)
		value, wrong := strconv.ParseUint(o.Value, 0, 32)
		if o.Class != class || o.Type != kind || err != nil || wrong != nil {
			continue
		}
		bound, ok := z.rules.Port(datapath, value&outPort)
		if !ok || bound.Multicast {
			continue
		}
		port := bound.Name
		if e, ok := w.names.Holder(port, 0); ok {
			port = e.Name
		}
		return fmt.Sprintf(": by the southbound database the packet is for port %s there, and the egress pipeline of %s decides", port, z.rules.Datapath(datapath))
	}
	return ""
}

// crosses adds what is assumed of a packet that goes from a node to one with other databases.
func (w *writer) crosses(h *follow.Hop, b follow.Branch) {
	if b.Kind != follow.Networked || h.Node == "" || b.Next.Node == h.Node {
		return
	}
	from, to := w.nodes[h.Node].zone, w.nodes[b.Next.Node].zone
	if from != to && from.sb != nil && to.sb != nil {
		w.assume(fmt.Sprintf("%s and %s, which have different OVN databases, have the network %s in common", h.Node, b.Next.Node, strings.Join(b.Networks, ", ")))
	}
}
