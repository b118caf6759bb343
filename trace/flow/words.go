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
	switch {
	case ok:
		text = p.transport(src, dst)
	case p.EtherType() == ARP:
		text = fmt.Sprintf("arp %s -> %s", p.Get("arp_spa"), p.Get("arp_tpa"))
		if p.Get("arp_op") == "2" {
			text = fmt.Sprintf("arp reply %s -> %s", p.Get("arp_spa"), p.Get("arp_tpa"))
		}
	case p.Get("dl_src") == "" && p.protocolName() != "":
		text = p.protocolName()
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
func (p Packet) protocolName() string {
	protocol, _ := p.Protocol()
	return map[uint8]string{ICMP: "icmp", TCP: "tcp", UDP: "udp", ICMPv6: "icmp6", SCTP: "sctp"}[protocol]
}

// transport describes an IP packet.
func (p Packet) transport(src, dst netip.Addr) string {
	protocol, known := p.Protocol()
	name := p.protocolName()
	from, fromOK := p.Number("tp_src")
	to, toOK := p.Number("tp_dst")
	switch {
	case !known:
		name = "ip"
	case name == "":
		name = fmt.Sprintf("ip protocol %d", protocol)
	case protocol == ICMP || protocol == ICMPv6:
		return fmt.Sprintf("%s %v -> %v%s", name, src, dst, p.message())
	}
	if !fromOK || !toOK {
		return fmt.Sprintf("%s %v -> %v", name, src, dst)
	}
	text := fmt.Sprintf("%s %v -> %v", name, netip.AddrPortFrom(src, uint16(from)), netip.AddrPortFrom(dst, uint16(to)))
	if flags := p.Get("tcp_flags"); protocol == TCP && flags != "" && flags != "0" {
		text += ", " + strings.ReplaceAll(flags, "|", " ")
	}
	return text
}

// message describes an ICMP message, as a text to append.
func (p Packet) message() string {
	kind := p.Get("icmp_type")
	switch kind {
	case "":
		return ""
	case "8", "128":
		return ", echo request"
	case "0", "129":
		return ", echo reply"
	case "135":
		return ", neighbour solicitation for " + p.Get("nd_target")
	case "136":
		return ", neighbour advertisement of " + p.Get("nd_target")
	}
	return fmt.Sprintf(", type %s, code %s", kind, p.Get("icmp_code"))
}
