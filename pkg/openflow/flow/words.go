package flow

import (
	"fmt"
	"net/netip"
	"strings"
)

// Words describes the packet in a line for people: protocol, addresses and ports, and what
// is unusual of the rest.
func (p Packet) Words() string {
	var text string
	src, dst, ok := p.Addresses()
	protocol, _ := p.Protocol()
	switch {
	case ok:
		text = describeIP(p, src, dst)
	case p.EtherType() == ARP:
		text = fmt.Sprintf("arp %s -> %s", p.Get("arp_spa"), p.Get("arp_tpa"))
		if p.Get("arp_op") == "2" {
			text = fmt.Sprintf("arp reply %s -> %s", p.Get("arp_spa"), p.Get("arp_tpa"))
		}
	case p.Get("dl_src") == "" && protocolName(protocol) != "":
		text = protocolName(protocol)
	default:
		text = fmt.Sprintf("frame of type %#x %s -> %s", p.EtherType(), p.Get("dl_src"), p.Get("dl_dst"))
	}
	if p.IsTagged() && p.Has("dl_vlan") {
		text += ", VLAN " + p.Get("dl_vlan")
	}
	if ttl := p.Get("nw_ttl"); ok && ttl != "" && ttl != "64" {
		text += ", TTL " + ttl
	}
	return text
}

// protocolName returns the word for the protocol above IP, "" for another one.
func protocolName(protocol uint8) string {
	return map[uint8]string{ICMP: "icmp", TCP: "tcp", UDP: "udp", ICMPv6: "icmp6", SCTP: "sctp"}[protocol]
}

// describeIP describes an IP packet.
func describeIP(packet Packet, src, dst netip.Addr) string {
	protocol, known := packet.Protocol()
	name := protocolName(protocol)
	from, fromOK := packet.Number("tp_src")
	to, toOK := packet.Number("tp_dst")
	switch {
	case !known:
		name = "ip"
	case name == "":
		name = fmt.Sprintf("ip protocol %d", protocol)
	case protocol == ICMP || protocol == ICMPv6:
		return fmt.Sprintf("%s %v -> %v%s", name, src, dst, describeICMP(packet))
	}
	if !fromOK || !toOK {
		return fmt.Sprintf("%s %v -> %v", name, src, dst)
	}
	text := fmt.Sprintf("%s %v -> %v", name, netip.AddrPortFrom(src, uint16(from)), netip.AddrPortFrom(dst, uint16(to)))
	if flags := packet.Get("tcp_flags"); protocol == TCP && flags != "" && flags != "0" {
		text += ", " + strings.ReplaceAll(flags, "|", " ")
	}
	return text
}

// describeICMP describes an ICMP message, as a text to append.
func describeICMP(packet Packet) string {
	kind := packet.Get("icmp_type")
	switch kind {
	case "":
		return ""
	case "8", "128":
		return ", echo request"
	case "0", "129":
		return ", echo reply"
	case "135":
		return ", neighbour solicitation for " + packet.Get("nd_target")
	case "136":
		return ", neighbour advertisement of " + packet.Get("nd_target")
	}
	return fmt.Sprintf(", type %s, code %s", kind, packet.Get("icmp_code"))
}
