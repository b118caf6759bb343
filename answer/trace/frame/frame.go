// Package frame reads real packets: the bytes of a frame become the packet that
// ofproto/trace takes, with what its text can't express. Where a header is short or absent,
// its fields are those that Open vSwitch extracts (lib/flow.c, miniflow_extract).
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"ovs-offline/pkg/openflow/flow"
)

// Frame is a packet, with the identifier of an ICMP query (0 for none) and the packet
// inside an ICMP error (nil for none).
type Frame struct {
	Packet flow.Packet
	ID     uint16
	Quoted *Frame
	Size   int // in bytes
	// Datagram is the identification of the datagram that a fragment is a part of, 0 for a
	// packet that is not a fragment.
	Datagram uint32
	// Headless reports that the header of the IP packet's protocol is short or absent, so
	// that conntrack can't track the packet.
	Headless bool
	// MayFragment reports that the packet allows routers to send it in fragments: its IPv4 header lacks the bit
	// that forbids it.
	MayFragment bool
	inside      bool // an ICMP error
}

// errShort is the error of a frame without an Ethernet header.
var errShort = errors.New("the frame ends within the Ethernet header")

// Parse reads an Ethernet frame. Of its VLAN tags, the two outer ones are fields of the
// packet.
func Parse(raw []byte) (Frame, error) {
	parsed := Frame{Size: len(raw)}
	if len(raw) < 14 {
		return parsed, errShort
	}
	var ethernet flow.Packet
	ethernet.Set("dl_src", net.HardwareAddr(raw[6:12]).String())
	ethernet.Set("dl_dst", net.HardwareAddr(raw[:6]).String())
	kind, rest := binary.BigEndian.Uint16(raw[12:]), raw[14:]
	tags := []string{"", "1"} // of the names of the fields
	for (kind == vlan || kind == serviceVLAN) && len(tags) > 0 && len(rest) >= 4 {
		tag := binary.BigEndian.Uint16(rest)
		ethernet.Set("dl_vlan"+tags[0], fmt.Sprint(tag&0xfff))
		ethernet.Set("dl_vlan_pcp"+tags[0], fmt.Sprint(tag>>13))
		kind, rest, tags = binary.BigEndian.Uint16(rest[2:]), rest[4:], tags[1:]
	}
	if kind < smallestType {
		kind, rest = snap(rest)
	}
	parsed.readNetwork(kind, rest, ethernet)
	return parsed, nil
}

// Ethernet types of VLAN tags, and the smallest number that is a type and not a length
// (IEEE 802.3).
const (
	vlan         = uint16(layers.EthernetTypeDot1Q)
	serviceVLAN  = uint16(layers.EthernetTypeQinQ)
	smallestType = 0x600
)

// noType is the Ethernet type that Open vSwitch gives a frame without one.
const noType = 0x5ff

// snap returns the Ethernet type in a SNAP header, and what follows it.
func snap(raw []byte) (kind uint16, rest []byte) {
	const header = "\xaa\xaa\x03\x00\x00\x00"
	if len(raw) < len(header)+2 || string(raw[:len(header)]) != header {
		return noType, nil
	}
	if kind = binary.BigEndian.Uint16(raw[len(header):]); kind < smallestType {
		return noType, nil
	}
	return kind, raw[len(header)+2:]
}

// readNetwork reads what follows the Ethernet header, whose fields come after the word for
// the protocol.
func (f *Frame) readNetwork(kind uint16, raw []byte, ethernet flow.Packet) {
	fields := ethernet.Fields()
	begin := func(word, value string) {
		f.Packet = flow.Packet{}
		f.Packet.Set(word, value)
		for _, field := range fields {
			f.Packet.Set(field.Name, field.Value)
		}
	}
	switch kind {
	case flow.ARP:
		begin("arp", "")
		f.readARP(raw)
	case flow.IPv4:
		f.readIPv4(raw, begin)
	case flow.IPv6:
		f.readIPv6(raw, begin)
	default:
		begin("dl_type", fmt.Sprintf("%#04x", kind))
	}
}

// readARP reads an ARP message.
func (f *Frame) readARP(raw []byte) {
	if len(raw) < 28 {
		return
	}
	f.Packet.Set("arp_spa", netip.AddrFrom4([4]byte(raw[14:18])).String())
	f.Packet.Set("arp_tpa", netip.AddrFrom4([4]byte(raw[24:28])).String())
	f.Packet.Set("arp_op", fmt.Sprint(binary.BigEndian.Uint16(raw[6:])))
	f.Packet.Set("arp_sha", net.HardwareAddr(raw[8:14]).String())
	f.Packet.Set("arp_tha", net.HardwareAddr(raw[18:24]).String())
}

// readIPv4 reads an IPv4 packet.
func (f *Frame) readIPv4(raw []byte, begin func(word, value string)) {
	var ip layers.IPv4
	if err := ip.DecodeFromBytes(raw, gopacket.NilDecodeFeedback); err != nil {
		begin("ip", "")
		f.Headless = true
		return
	}
	protocol := uint8(ip.Protocol)
	f.beginWithProtocol(protocol, "", begin)
	f.Packet.Set("nw_src", ip.SrcIP.String())
	f.Packet.Set("nw_dst", ip.DstIP.String())
	f.setService(ip.TOS, ip.TTL)
	f.MayFragment = ip.Flags&layers.IPv4DontFragment == 0
	if f.readFragment(ip.FragOffset, ip.Flags&layers.IPv4MoreFragments != 0, uint32(ip.Id)) {
		f.readTransport(protocol, ip.Payload)
	}
}

// readFragment notes whether an IP packet is a fragment, and reports whether the header of its
// protocol follows.
func (f *Frame) readFragment(offset uint16, more bool, id uint32) bool {
	switch {
	case offset != 0:
		f.Packet.Set("nw_frag", "later")
	case more:
		f.Packet.Set("nw_frag", "first")
	default:
		return true
	}
	f.Datagram = id
	return offset == 0
}

// readIPv6 reads an IPv6 packet.
func (f *Frame) readIPv6(raw []byte, begin func(word, value string)) {
	var ip layers.IPv6
	if len(raw) < 40 {
		begin("ipv6", "")
		f.Headless = true
		return
	}
	// Only the payload is missing where this fails.
	_ = ip.DecodeFromBytes(raw, gopacket.NilDecodeFeedback)
	protocol, rest, part, ok := extensions(ip)
	if part != nil && part.FragmentOffset != 0 {
		protocol = layers.IPProtocolIPv6Fragment // Open vSwitch does not look for the protocol of a later fragment
	}
	f.beginWithProtocol(uint8(protocol), "6", begin)
	f.Packet.Set("ipv6_src", ip.SrcIP.String())
	f.Packet.Set("ipv6_dst", ip.DstIP.String())
	f.Packet.Set("ipv6_label", fmt.Sprintf("0x%05x", ip.FlowLabel))
	f.setService(ip.TrafficClass, ip.HopLimit)
	switch {
	case !ok:
		f.Headless = true
	case part == nil || f.readFragment(part.FragmentOffset, part.MoreFragments, part.Identification):
		f.readTransport(uint8(protocol), rest)
	}
}

// extensions returns the protocol after the extension headers of a packet, and what follows
// them; part is the fragment header, nil for none. ok is false if the packet ends before.
func extensions(ip layers.IPv6) (protocol layers.IPProtocol, rest []byte, part *layers.IPv6Fragment, ok bool) {
	protocol, rest = ip.NextHeader, ip.Payload
	if ip.HopByHop != nil {
		protocol = ip.HopByHop.NextHeader
	}
	for {
		var length int
		switch protocol {
		case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Destination:
			length = 8
			if len(rest) >= 2 {
				length += int(rest[1]) * 8
			}
		case layers.IPProtocolAH:
			length = 8
			if len(rest) >= 2 {
				length += int(rest[1]) * 4
			}
		case layers.IPProtocolIPv6Fragment:
			length = 8
			if len(rest) >= length {
				offset := binary.BigEndian.Uint16(rest[2:])
				part = &layers.IPv6Fragment{FragmentOffset: offset >> 3, MoreFragments: offset&1 != 0, Identification: binary.BigEndian.Uint32(rest[4:])}
			}
		default:
			return protocol, rest, part, true
		}
		if len(rest) < length {
			return protocol, nil, part, false
		}
		if part != nil && part.FragmentOffset != 0 {
			return protocol, nil, part, true
		}
		protocol, rest = layers.IPProtocol(rest[0]), rest[length:]
	}
}

// beginWithProtocol begins the packet with the word for its protocol.
func (f *Frame) beginWithProtocol(number uint8, version string, begin func(word, value string)) {
	words := map[uint8]string{flow.TCP: "tcp" + version, flow.UDP: "udp" + version, flow.SCTP: "sctp" + version}
	words[flow.ICMP], words[flow.ICMPv6] = "icmp", "icmp6"
	word, known := words[number]
	if !known || (number == flow.ICMP) != (word == "icmp" && version == "") || number == flow.ICMPv6 && version == "" {
		begin(map[string]string{"": "ip", "6": "ipv6"}[version], "")
		f.Packet.Set("nw_proto", fmt.Sprint(number))
		return
	}
	begin(word, "")
}

// setService sets the fields of the type of service and the TTL.
func (f *Frame) setService(tos, ttl byte) {
	f.Packet.Set("nw_tos", fmt.Sprint(tos&^3))
	f.Packet.Set("nw_ecn", fmt.Sprint(tos&3))
	f.Packet.Set("nw_ttl", fmt.Sprint(ttl))
}

// headerSize returns the number of bytes that Open vSwitch needs of a protocol's header to
// extract its fields, 0 for a protocol whose fields it does not extract. In an ICMP error, which
// quotes the beginning of a packet (RFC 792), ports are enough.
func (f *Frame) headerSize(number uint8) int {
	const ports = 4
	switch {
	case f.inside && (number == flow.TCP || number == flow.UDP || number == flow.SCTP):
		return ports
	case number == flow.TCP:
		return 20
	case number == flow.SCTP:
		return 12
	case number == flow.UDP, number == flow.ICMP, number == flow.ICMPv6:
		return 8
	}
	return 0
}

// readTransport reads the header of an IP packet's protocol.
func (f *Frame) readTransport(number uint8, raw []byte) {
	if f.Headless = len(raw) < f.headerSize(number); f.Headless {
		return
	}
	switch number {
	case flow.TCP, flow.UDP, flow.SCTP:
		f.Packet.Set("tp_src", fmt.Sprint(binary.BigEndian.Uint16(raw)))
		f.Packet.Set("tp_dst", fmt.Sprint(binary.BigEndian.Uint16(raw[2:])))
		if number == flow.TCP && len(raw) >= 14 {
			f.Packet.Set("tcp_flags", tcpFlags(binary.BigEndian.Uint16(raw[12:])&0xfff))
		}
	case flow.ICMP, flow.ICMPv6:
		f.readICMP(number, raw)
	}
}

// tcpFlags returns the flags of TCP as flows print them.
func tcpFlags(bits uint16) string {
	var names []string
	for i, name := range tcpNames() {
		if bits&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "0"
	}
	return strings.Join(names, "|")
}

// tcpNames returns the names of the flags of TCP by their bits (ovs-fields(7)).
func tcpNames() []string {
	return []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"}
}

// readICMP reads an ICMP or ICMPv6 message.
func (f *Frame) readICMP(number uint8, raw []byte) {
	f.Packet.Set("icmp_type", fmt.Sprint(raw[0]))
	f.Packet.Set("icmp_code", fmt.Sprint(raw[1]))
	if number == flow.ICMPv6 {
		f.readICMPv6(raw)
		return
	}
	switch raw[0] {
	case 0, 8, 13, 14, 15, 16, 17, 18:
		f.ID = binary.BigEndian.Uint16(raw[4:])
	case 3, 4, 5, 11, 12:
		f.readQuoted(flow.IPv4, raw[8:])
	}
}

// readICMPv6 reads what follows the type and code of an ICMPv6 message.
func (f *Frame) readICMPv6(raw []byte) {
	switch raw[0] {
	case 128, 129:
		f.ID = binary.BigEndian.Uint16(raw[4:])
	case 1, 2, 3, 4:
		f.readQuoted(flow.IPv6, raw[8:])
	case 135, 136:
		if len(raw) < 24 {
			return
		}
		f.Packet.Set("nd_target", netip.AddrFrom16([16]byte(raw[8:24])).String())
		f.readDiscovery(raw[24:])
	}
}

// readDiscovery reads the options of a neighbour discovery message.
func (f *Frame) readDiscovery(raw []byte) {
	for len(raw) >= 8 && raw[1] > 0 && len(raw) >= int(raw[1])*8 {
		if name := map[byte]string{1: "nd_sll", 2: "nd_tll"}[raw[0]]; name != "" {
			f.Packet.Set(name, net.HardwareAddr(raw[2:8]).String())
		}
		raw = raw[int(raw[1])*8:]
	}
}

// readQuoted reads the packet inside an ICMP error, as much of it as there is.
func (f *Frame) readQuoted(kind uint16, raw []byte) {
	inner := Frame{inside: true}
	inner.readNetwork(kind, raw, flow.Packet{})
	if _, _, ok := inner.Packet.Addresses(); ok && !inner.Headless {
		f.Quoted = &inner
	}
}
