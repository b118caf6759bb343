package trace

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/snapshot/names"
)

// directory finds the endpoints of a packet in the OVN databases: its receiver, the ports with its
// MAC or IP address, and what answers it.
type directory struct {
	*names.Names
	// routerPort returns the name of the router's port by which a packet leaves on a node, "" if it is
	// not known.
	routerPort func(node string, at registers) string
}

// nameOf returns the name by which users know a logical port, or else its own.
func (d directory) nameOf(port string) string {
	if port == "" {
		return ""
	}
	if e, err := d.Find(port, names.Filter{}); err == nil {
		return e.Name
	}
	return port
}

// neighbour returns the MAC address with which a port of a node answers for an address, "" if the address
// is not its own.
func (d directory) neighbour(node, port string, address netip.Addr) string {
	for _, holder := range d.WithIP(address) {
		if holder.Node == node && cmp.Or(holder.Parent, holder.LogicalPort) == port {
			return holder.MAC
		}
	}
	return ""
}

// place returns a port of a bridge as answers name it; without a port, the bridge.
func (d directory) place(node, bridge string, port *host.Port) answer.Location {
	place := answer.Location{Node: node, Bridge: bridge}
	if port != nil {
		place.Bridge, place.Port, place.LogicalPort = port.Bridge, port.Name, port.IfaceID
	}
	if name := d.nameOf(place.LogicalPort); name != place.LogicalPort {
		place.Endpoint = name
	}
	return place
}

// receiver returns the endpoint that receives a packet that came out of a port.
func (d directory) receiver(branch follow.Branch) (e names.Endpoint, ok bool) {
	if branch.Port == nil || branch.Port.IfaceID == "" {
		return names.Endpoint{}, false
	}
	return d.Holder(branch.Port.IfaceID, tagOf(branch.Packet))
}

// comesOut accepts every port that a packet comes out of. Where the databases show which ports
// have the address that it is sent to, it accepts no physical network and no other port of
// theirs: what is there may forward the packet. The management port of a node of
// ovn-kubernetes leads to the node, which has the address of its gateway router too.
func (d directory) comesOut(hop *follow.Hop, branch follow.Branch) bool {
	if !isDelivered(hop, branch) || branch.Port == nil {
		return isDelivered(hop, branch)
	}
	ip, err := netip.ParseAddr(destination(branch.Packet))
	holders := d.WithIP(ip)
	if err != nil || len(holders) == 0 {
		return true
	}
	endpoint, known := d.receiver(branch)
	return len(branch.Networks) == 0 && (!known || hasAddress(branch.Packet, endpoint) || d.isOfRouter(hop.Node, branch.Packet, endpoint))
}

// isOfRouter reports whether a packet for an address of the gateway router of a node came to the
// management port of that node of ovn-kubernetes, which has the address too.
func (d directory) isOfRouter(node string, packet flow.Packet, endpoint names.Endpoint) bool {
	ip, err := netip.ParseAddr(destination(packet))
	return err == nil && endpoint.Kind == names.NodePort && slices.ContainsFunc(d.WithIP(ip), func(holder names.Endpoint) bool {
		return holder.Kind == names.RouterPort && holder.Node == node
	})
}

// isForAnother reports whether the databases show that another port than the one where a packet
// comes out has its MAC address: a bridge flooded the packet.
func (d directory) isForAnother(hop *follow.Hop, branch follow.Branch) bool {
	mac := branch.Packet.Get("dl_dst")
	if branch.Port == nil || isMulticast(mac) {
		return false
	}
	holders := d.WithMAC(mac)
	return len(holders) > 0 && !slices.ContainsFunc(holders, func(endpoint names.Endpoint) bool {
		// The bridge of ovn-kubernetes's nodes has the MAC address of their gateway router.
		ofNode := endpoint.Kind == names.RouterPort && endpoint.Node == hop.Node && branch.Port.IfaceID == "" && len(branch.Networks) == 0
		return ofNode || endpoint.LogicalPort != "" && branch.Port.IfaceID == cmp.Or(endpoint.Parent, endpoint.LogicalPort)
	})
}

// doubtOnNetwork returns why it is not known what becomes of a packet on a physical network, ""
// if the collected nodes show it.
func (d directory) doubtOnNetwork(branch follow.Branch) string {
	mac := branch.Packet.Get("dl_dst")
	leaves := fmt.Sprintf("the packet leaves by port %s of %s for the MAC address %s on the network %s", branch.Port.Name, branch.Port.Bridge, mac, strings.Join(branch.Networks, ", "))
	if _, ok := d.enclosed(branch); ok {
		return ""
	}
	if len(d.WithMAC(mac)) == 0 {
		return leaves + ", which no port in the databases has"
	}
	if holder := d.holderElsewhere(mac); holder != "" {
		return leaves + holder
	}
	return ""
}

// enclosed returns why nothing outside brings a packet to its address, which leaves by a physical
// network for a next hop outside; ok is false for another packet.
func (d directory) enclosed(branch follow.Branch) (found names.Enclosure, ok bool) {
	mac := branch.Packet.Get("dl_dst")
	ip, err := netip.ParseAddr(destination(branch.Packet))
	if err != nil || branch.Kind != follow.Delivered || len(branch.Networks) == 0 || isMulticast(mac) || len(d.WithMAC(mac)) > 0 {
		return names.Enclosure{}, false
	}
	return d.Enclosed(ip)
}

// idleService names the service to whose address a packet goes, as a text to append, if no load
// balancer of OVN has the service; it returns "" for another packet.
func (d directory) idleService(packet flow.Packet) string {
	ip, err := netip.ParseAddr(destination(packet))
	if err != nil {
		return ""
	}
	for _, holder := range d.WithIP(ip) {
		if holder.Kind == names.Service && holder.Balancer == "" {
			return " but that of " + holder.Name + ", which no load balancer of OVN has"
		}
	}
	return ""
}

// detachedNetwork describes the logical network of the address of a packet that arrives at the port
// of a node, if the node has no route to that network; it returns "" for another packet.
func (d directory) detachedNetwork(branch follow.Branch) string {
	ip, err := netip.ParseAddr(destination(branch.Packet))
	if err != nil || branch.Kind != follow.Delivered || branch.Port == nil || len(branch.Networks) > 0 {
		return ""
	}
	if endpoint, ok := d.receiver(branch); !ok || endpoint.Kind != names.NodePort || endpoint.MAC != branch.Packet.Get("dl_dst") || hasAddress(branch.Packet, endpoint) {
		return ""
	}
	return d.Detached(ip)
}

// holderElsewhere names the endpoint that has a MAC address, as a text to append, if no
// collected node has the endpoint; it returns "" if one does, or if no endpoint has the address.
func (d directory) holderElsewhere(mac string) string {
	holders := d.WithMAC(mac)
	if len(holders) == 0 || slices.ContainsFunc(holders, isHere) {
		return ""
	}
	endpoint := holders[0]
	if endpoint.Chassis == "" {
		return ": it belongs to " + endpoint.Name + ", which is not connected to Open vSwitch"
	}
	return ": it belongs to " + endpoint.Name + " on node " + endpoint.Chassis + ", which was not captured"
}

// isHere reports whether the collected nodes show what becomes of a packet to an endpoint:
// one of them has it, or each chassis, or none.
func isHere(e names.Endpoint) bool {
	return !e.External && (e.Node != "" || e.Chassis == "")
}

// isForOthers reports whether a packet got over a physical network to a node whose replica can't
// be asked, and other nodes have its MAC address. Such a node is as one that was not captured.
func (d directory) isForOthers(branch follow.Branch) bool {
	if branch.Absent == "" || len(branch.Networks) == 0 {
		return false
	}
	holders := d.WithMAC(branch.Packet.Get("dl_dst"))
	mayBeThere := func(e names.Endpoint) bool { return e.Node == "" || e.Node == branch.Absent }
	return len(holders) > 0 && !slices.ContainsFunc(holders, mayBeThere)
}

// unanswered says why nothing answers for the address of the next hop, of a packet that a router
// of OVN keeps until the next hop has answered; "" if something may have the address.
func (d directory) unanswered(hop *follow.Hop, branch follow.Branch) (why string, next netip.Addr) {
	if branch.Response == nil || !branch.Response.Asks {
		return "", next
	}
	if next = hop.Pass.NextHop(); !next.IsValid() {
		return "", next
	}
	port := d.routerPort(hop.Node, registersAt(hop.Pass, branch.Stage))
	if d.Own(port, next) {
		return fmt.Sprintf("the address %s of the next hop is the router's own, of its port %s, and nothing answers for it", next, port), next
	}
	if network := d.Vacant(port, next); network != "" {
		return fmt.Sprintf("no port and no router of %s has the address %s of the next hop", network, next), next
	}
	return "", next
}

// answerer names what answers a request. mac is the source of the answer, "" if it is not
// known.
func (d directory) answerer(request flow.Packet, mac string) string {
	text := request.Get("arp_tpa")
	if isSolicitation(request) {
		text = request.Get("nd_target")
	}
	if text == "" {
		text = destination(request)
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return "OVN"
	}
	holders := d.WithIP(ip)
	isPort := func(e names.Endpoint) bool { return e.Kind == names.RouterPort }
	ports := slices.DeleteFunc(slices.Clone(holders), func(e names.Endpoint) bool { return !isPort(e) })
	if len(ports) > 1 { // of the router that answered
		near := slices.DeleteFunc(slices.Clone(ports), func(e names.Endpoint) bool {
			return !slices.ContainsFunc(d.WithMAC(mac), func(o names.Endpoint) bool { return isPort(o) && o.Switch == e.Switch })
		})
		if len(near) == 1 {
			ports = near
		}
	}
	switch {
	case len(ports) == 1:
		return fmt.Sprintf("router port %s (%s)", ports[0].Name, ip)
	case len(ports) > 1:
		return fmt.Sprintf("a router port with the address %s", ip)
	case len(holders) == 1:
		return fmt.Sprintf("OVN for %s (%s)", holders[0].Name, ip)
	}
	return fmt.Sprintf("OVN for %s", ip)
}

// replyStart returns where the reply to a packet that arrived begins; ok is false if nothing
// replies to it. The receiver resolves the MAC address that it replies to itself, and does not
// take the packet's source.
func (d directory) replyStart(end arrival) (start follow.Start, ok bool) {
	start, ok = follow.Reply(end.hop, end.branch)
	if !ok {
		return start, false
	}
	if mac := d.resolved(end.branch, destination(start.Packet)); mac != "" {
		start.Packet.Set("dl_dst", mac)
	}
	return start, true
}

// resolved returns the MAC address to which the receiver of a packet sends what it sends to an
// address, "" if the databases don't state it.
func (d directory) resolved(branch follow.Branch, address string) string {
	endpoint, ok := d.receiver(branch)
	if source, err := netip.ParseAddr(destination(branch.Packet)); !ok && len(branch.Networks) > 0 && err == nil {
		endpoint, ok = names.Endpoint{Kind: names.External, IPs: []netip.Addr{source}}, true
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || !ok {
		return ""
	}
	first, err := d.First(names.Question{From: endpoint, To: names.Endpoint{Kind: names.External, Name: ip.String(), IPs: []netip.Addr{ip}}})
	if err != nil || first.Unresolved.IsValid() {
		return ""
	}
	packet, err := flow.Parse(first.Flow)
	if err != nil || destination(packet) != address {
		return ""
	}
	return packet.Get("dl_dst")
}

// isMulticast reports whether a MAC address is a group's.
func isMulticast(mac string) bool {
	return len(mac) > 1 && strings.ContainsRune("13579bdf", rune(mac[1]))
}

// tagOf returns the outer VLAN tag of a packet, 0 for none.
func tagOf(packet flow.Packet) int {
	tag, _ := strconv.Atoi(packet.Get("dl_vlan"))
	return tag
}
