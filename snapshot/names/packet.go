package names

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/ovn"
)

// Question describes the packet to send from one endpoint to another.
type Question struct {
	From, To Endpoint
	// Protocol is one of Protocols; "" means a service's protocol, tcp if a port is given, else icmp.
	Protocol string
	// SrcPort and DstPort are 0 for a default: the service's port, or else 80; 0 can't be
	// asked for.
	SrcPort, DstPort uint16
	// ICMPType and ICMPCode describe an echo request if Type is nil.
	ICMPType, ICMPCode *uint8
	TTL                int // 64 if 0
	Family             int // 4 or 6; 0 for the one that both endpoints have, IPv4 first
}

// icmp6 is the protocol ICMP over IPv6.
const icmp6 = "icmp6"

// Protocols returns the protocols that a question can have.
func Protocols() []string { return []string{"tcp", "udp", "sctp", "icmp", icmp6} }

// Packet is the first packet of a question, and where it starts.
type Packet struct {
	// Nodes are the nodes of the set where the packet can start. A packet of a logical port
	// starts on one. A packet from outside comes from a physical network, which any of the
	// nodes may be the first to receive from.
	Nodes []string
	// Port is the iface-id of the interface that sends the packet, "" from outside.
	Port string
	// PhysicalNetwork is the network that a packet from outside comes from.
	PhysicalNetwork string
	// Flow is the packet as ofproto/trace takes it, without in_port. That of TCP opens a
	// connection.
	Flow   string
	Family int // of its addresses, 4 or 6
	// Unresolved is the address whose MAC address the sender can't learn from OVN: no port
	// and no router of its switch has it. Flow is then the ARP request, or the neighbor
	// solicitation, that the sender would send first.
	Unresolved netip.Addr
	// Vacant describes the network on which nothing can have the address Unresolved; "" if
	// something that the databases don't show may have it.
	Vacant string
	// Assumed are sentences about what no database states.
	Assumed []string
	// Unknown says why the packet may be another one: what it is made from is known in part; "" if it is not.
	Unknown string
}

// Errors for errors.Is.
var (
	ErrNotSender = errors.New("sends no packets")
	ErrNotBound  = errors.New("not bound to a chassis")
	ErrNoNode    = errors.New("its node is not in the set")
	ErrFamily    = fault.Wrap(fault.Usage, errors.New("no addresses of the same family"))
	ErrNoEntry   = errors.New("no way from outside leads to it")
)

// First returns the first packet of a question.
func (n *Names) First(question Question) (Packet, error) {
	src, dst, bare, err := addresses(question)
	if err != nil {
		return Packet{}, err
	}
	builder := builder{names: n, q: question, src: src, dst: dst, bare: bare, packet: Packet{Family: familyOf(src), Unknown: n.unknown}}
	if bare {
		builder.assume("%s and %s have no IP addresses in the databases: the packet has %s and %s, and a rule for other addresses may decide otherwise", question.From.Name, question.To.Name, src, dst)
	}
	switch question.From.Kind {
	case External:
		err = builder.fromOutside(n)
	case Service, FloatingIP, RouterPort:
		return Packet{}, fmt.Errorf("%s (%s) %w: ask from a port, a pod, a node or external/ADDRESS", question.From.Name, question.From.Kind, ErrNotSender)
	default:
		err = builder.fromPort(n.zones[question.From.zone])
	}
	if err != nil {
		return Packet{}, err
	}
	if builder.packet.Unresolved.IsValid() {
		builder.packet.Flow = builder.tagged(builder.neighbourRequest())
		return builder.packet, nil
	}
	builder.packet.Flow = builder.tagged(builder.flow())
	return builder.packet, nil
}

// addresses returns the addresses of the packet. They are bare, of the link-local network 169.254.0.0/16 (RFC 3927), if both ends are
// ports of one switch that have MAC addresses only.
func addresses(question Question) (src, dst netip.Addr, bare bool, err error) {
	wanted := question.Family
	if question.Protocol == icmp6 {
		if wanted == 4 {
			return src, dst, false, fmt.Errorf("%s is over IPv6, and IPv4 was asked for: %w", icmp6, ErrFamily)
		}
		wanted = 6
	}
	for _, family := range []int{4, 6} {
		from, hasFrom := question.From.address(family)
		to, hasTo := question.To.address(family)
		if hasFrom && hasTo && (wanted == 0 || wanted == family) {
			return from, to, false, nil
		}
	}
	from, to := question.From, question.To
	if wanted != 6 && !from.hasAddress() && !to.hasAddress() && from.MAC != "" && to.MAC != "" && from.Switch == to.Switch && from.zone == to.zone {
		return netip.AddrFrom4([4]byte{169, 254, 0, 1}), netip.AddrFrom4([4]byte{169, 254, 0, 2}), true, nil
	}
	which := ""
	if wanted != 0 {
		which = fmt.Sprintf(" (IPv%d was asked for)", wanted)
	}
	return src, dst, false, fmt.Errorf("%s and %s have %w%s: name the packet with --flow 'BRIDGE in_port=PORT,...'", from.Name, to.Name, ErrFamily, which)
}

// hasAddress reports whether the databases have an IP address of the endpoint.
func (e Endpoint) hasAddress() bool {
	_, ipv4 := e.address(4)
	_, ipv6 := e.address(6)
	return ipv4 || ipv6
}

// builder makes one packet.
type builder struct {
	names          *Names
	q              Question
	src, dst       netip.Addr
	bare           bool // see addresses
	srcMAC, dstMAC string
	vlan           int
	packet         Packet
}

func (b *builder) assume(format string, args ...any) {
	b.packet.Assumed = append(b.packet.Assumed, fmt.Sprintf(format, args...))
}

// fromPort starts the packet at the port of a logical switch.
func (b *builder) fromPort(zone *zone) error {
	endpoint := b.q.From
	switch {
	case endpoint.External: // its packets come from the physical network
	case endpoint.Chassis == "" && !endpoint.Localport:
		return fmt.Errorf("port %s of %s is %w: it sends nothing", endpoint.LogicalPort, endpoint.Name, ErrNotBound)
	case endpoint.Node == "" && endpoint.Localport:
		return fmt.Errorf("%s is a port of every node: %w", endpoint.Name, ErrNoNode)
	case endpoint.Node == "":
		return fmt.Errorf("%s is on %s: %w; collect that node as well", endpoint.Name, endpoint.Chassis, ErrNoNode)
	}
	b.packet.Nodes, b.packet.Port, b.srcMAC = []string{endpoint.Node}, endpoint.LogicalPort, endpoint.MAC
	if endpoint.Parent != "" {
		b.packet.Port, b.vlan = endpoint.Parent, endpoint.Tag
	}
	ls := zone.switches[endpoint.Switch]
	if endpoint.External {
		if err := b.fromNetwork(zone, ls); err != nil {
			return err
		}
	}
	switch {
	case b.bare:
		b.dstMAC = b.q.To.MAC
	case b.dst.IsMulticast():
		b.dstMAC = multicastMAC(b.dst)
	case ls != nil:
		b.resolve(zone, ls)
	default:
		b.noteUnresolved(zone, ls, b.dst)
	}
	b.noteVirtual(endpoint, b.srcMAC)
	b.noteVirtual(b.q.To, b.dstMAC)
	return nil
}

// noteVirtual notes that a packet has the MAC address of the parent of a virtual port.
func (b *builder) noteVirtual(endpoint Endpoint, mac string) {
	if endpoint.virtual && endpoint.Parent != "" && endpoint.MAC == mac {
		b.assume("%s is a virtual port: its parent, port %s, has it with the MAC address %s", endpoint.Name, endpoint.Parent, mac)
	}
}

// fromNetwork starts the packet of an external port in the physical network of its
// switch.
func (b *builder) fromNetwork(zone *zone, ls *logicalSwitch) error {
	if ls == nil || len(ls.localnet) == 0 || len(zone.networks[ls.localnet[0].network]) == 0 {
		return fmt.Errorf("%s is outside of Open vSwitch: %w has the physical network of its switch", b.q.From.Name, ErrNoNode)
	}
	local := ls.localnet[0]
	b.packet.Nodes, b.packet.Port = slices.Clone(zone.networks[local.network]), ""
	b.packet.PhysicalNetwork, b.vlan = local.network, local.tag
	return nil
}

// multicastMAC returns the MAC address of a multicast group (RFC 1112, 6.4 and RFC 2464, 7).
func multicastMAC(group netip.Addr) string {
	if raw := group.As16(); group.Is6() {
		return fmt.Sprintf("33:33:%02x:%02x:%02x:%02x", raw[12], raw[13], raw[14], raw[15])
	}
	raw := group.As4()
	return fmt.Sprintf("01:00:5e:%02x:%02x:%02x", raw[1]&0x7f, raw[2], raw[3])
}

// resolve finds the MAC address that a port's packet is sent to: the destination's
// if it is on the link, else a router's.
func (b *builder) resolve(zone *zone, ls *logicalSwitch) {
	next, link := b.dst, b.link(zone, ls)
	if neighbour := link.Contains(b.dst) || link.IsSingleIP() && ls.hosts[b.dst] != ""; !neighbour {
		next = b.gateway(zone, ls, link)
	}
	if !next.IsValid() && len(ls.gateways) > 0 {
		b.dstMAC = ls.gateways[0]
		b.assume("%s sends to %s: which router machines of its network send to is not in the OVS database", b.q.From.Name, ls.routerText(b.dstMAC))
		return
	}
	if !next.IsValid() {
		b.noteUnresolved(zone, ls, b.dst)
		return
	}
	if b.dstMAC = zone.macOn(ls, next); b.dstMAC != "" {
		return
	}
	if b.dstMAC = b.names.macOnWire(ls, next); b.dstMAC != "" {
		return
	}
	if b.dstMAC = zone.learnedMAC(ls, next); b.dstMAC != "" {
		b.assume("%s has the MAC address %s, which a router of %s has learned", next, b.dstMAC, ls.name)
		return
	}
	b.noteUnresolved(zone, ls, next)
}

// noteUnresolved notes that nothing is known to have the address of the next hop.
func (b *builder) noteUnresolved(zone *zone, ls *logicalSwitch, next netip.Addr) {
	b.packet.Unresolved = next
	if ls != nil && zone.isVacant(ls, next) {
		b.packet.Vacant = ls.describe(next)
	}
}

// link returns the prefix of the addresses that the sender takes for its neighbours.
func (b *builder) link(zone *zone, ls *logicalSwitch) netip.Prefix {
	for _, port := range ls.routers {
		for _, network := range port.networks {
			if network.Contains(b.src) && network.Bits() < b.src.BitLen() {
				return network.Masked()
			}
		}
	}
	for _, subnet := range ls.subnets {
		if subnet.Contains(b.src) {
			return subnet.Masked()
		}
	}
	if cidr := zone.dhcp(b.q.From, b.src)["cidr"]; cidr != "" {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Contains(b.src) {
			return prefix.Masked()
		}
	}
	bits := b.src.BitLen()
	if zone.nb == nil && zone.sb == nil { // no database of the node has the subnets of neutron
		bits = map[int]int{4: 24, 6: 64}[familyOf(b.src)]
		b.assume("the subnet of %s has a prefix of %d bits", b.q.From.Name, bits)
	}
	return netip.PrefixFrom(b.src, bits).Masked()
}

// gateway returns the address of the router that the sender takes: the one that DHCP
// gives to it, or else the router of its subnet.
func (b *builder) gateway(zone *zone, ls *logicalSwitch, link netip.Prefix) netip.Addr {
	if router, ok := gatewayOf(zone.dhcp(b.q.From, b.src), b.dst); ok {
		return router
	}
	var found []netip.Addr
	for _, port := range ls.routers {
		for _, network := range port.networks {
			if familyOf(network.Addr()) == familyOf(b.dst) && (link.Contains(network.Addr()) || link.IsSingleIP()) {
				found = append(found, network.Addr())
			}
		}
	}
	if len(found) == 0 {
		return netip.Addr{}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	if len(found) > 1 {
		b.assume("%s has %d routers in the subnet; it takes %s", b.q.From.Name, len(found), found[0])
	}
	return found[0]
}

// gatewayOf returns the router for an address that DHCP options give: the one of the longest
// prefix in classless_static_route, or else the option router, which has no effect beside
// classless static routes (RFC 3442).
func gatewayOf(options map[string]string, dst netip.Addr) (router netip.Addr, ok bool) {
	best := -1
	words := strings.FieldsFunc(options["classless_static_route"], func(char rune) bool { return strings.ContainsRune("{}, ", char) })
	for pair := range slices.Chunk(words, 2) {
		prefix, err := netip.ParsePrefix(pair[0])
		if len(pair) < 2 || err != nil || !prefix.Contains(dst) || prefix.Bits() <= best {
			continue
		}
		if next, valid := ovn.ParseAddress(pair[1]); valid {
			router, ok, best = next, true, prefix.Bits()
		}
	}
	if len(words) > 0 || ok {
		return router, ok
	}
	router, ok = ovn.ParseAddress(options["router"])
	return router, ok && familyOf(router) == familyOf(dst)
}

// neighbourRequest returns the ARP request, or the neighbor solicitation, for the address
// that is not resolved.
func (b *builder) neighbourRequest() string {
	target := b.packet.Unresolved
	if target.Is4() {
		return fmt.Sprintf("arp,dl_src=%s,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=%s,arp_tpa=%s,arp_sha=%s,arp_tha=00:00:00:00:00:00",
			b.srcMAC, b.src, target, b.srcMAC)
	}
	raw := target.As16()
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: raw[13], 14: raw[14], 15: raw[15]})
	return fmt.Sprintf("icmp6,dl_src=%s,dl_dst=33:33:ff:%02x:%02x:%02x,ipv6_src=%s,ipv6_dst=%s,nw_ttl=255,icmpv6_type=135,icmpv6_code=0,nd_target=%s,nd_sll=%s",
		b.srcMAC, raw[13], raw[14], raw[15], b.src, group, target, b.srcMAC)
}

// flow returns the packet itself.
func (b *builder) flow() string {
	protocol := b.protocol()
	ttl := b.q.TTL
	if ttl == 0 {
		ttl = 64
	}
	version := ""
	addresses := fmt.Sprintf("nw_src=%s,nw_dst=%s", b.src, b.dst)
	if b.src.Is6() {
		version, addresses = "6", fmt.Sprintf("ipv6_src=%s,ipv6_dst=%s", b.src, b.dst)
	}
	text := fmt.Sprintf("%s%s,dl_src=%s,dl_dst=%s,%s,nw_ttl=%d,", protocol, version, b.srcMAC, b.dstMAC, addresses, ttl)
	if protocol != "icmp" {
		text += fmt.Sprintf("%s_src=%d,%s_dst=%d", protocol, b.sourcePort(), protocol, b.destinationPort())
		if protocol == "tcp" {
			text += ",tcp_flags=syn"
		}
		return text
	}
	word, kind, code := "icmp", uint8(8), uint8(0) // an echo request (RFC 792)
	if b.src.Is6() {
		word, kind = "icmpv6", 128 // an echo request (RFC 4443)
	}
	if b.q.ICMPType != nil {
		kind = *b.q.ICMPType
	}
	if b.q.ICMPCode != nil {
		code = *b.q.ICMPCode
	}
	return text + fmt.Sprintf("%s_type=%d,%s_code=%d", word, kind, word, code)
}

func (b *builder) protocol() string {
	switch {
	case b.q.Protocol != "":
		return strings.TrimSuffix(b.q.Protocol, "6")
	case b.q.To.Protocol != "":
		return b.q.To.Protocol
	case b.q.DstPort != 0 || b.q.SrcPort != 0:
		return "tcp"
	}
	return "icmp"
}

// The ports of a packet whose question has none.
const (
	defaultSource      = 40000 // in the range of ephemeral ports (RFC 6335)
	defaultDestination = 80
)

func (b *builder) sourcePort() uint16 {
	if b.q.SrcPort != 0 {
		return b.q.SrcPort
	}
	return defaultSource
}

func (b *builder) destinationPort() uint16 {
	switch {
	case b.q.DstPort != 0:
		return b.q.DstPort
	case b.q.To.Port != 0:
		return b.q.To.Port
	}
	b.assume("the destination port is %d", defaultDestination)
	return defaultDestination
}

func (b *builder) tagged(flow string) string {
	if b.vlan == 0 {
		return flow
	}
	return fmt.Sprintf("dl_vlan=%d,dl_vlan_pcp=0,%s", b.vlan, flow)
}
