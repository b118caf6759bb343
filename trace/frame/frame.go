// Package frame reads real packets: the bytes of a frame become the packet that
// ofproto/trace takes, with what its text can't express.
package frame

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"ovs-offline/trace/flow"
)

// Frame is a packet, with the identifier of an ICMP query (0 for none) and the packet
// inside an ICMP error (nil for none).
type Frame struct {
	Packet flow.Packet
	ID     uint16
	Quoted *Frame
	Size   int // in bytes
}

// errShort is the error of a frame that ends within a header.
var errShort = errors.New("the frame ends within a header")

// Parse reads an Ethernet frame with up to one VLAN tag.
func Parse(raw []byte) (Frame, error) {
	f := Frame{Size: len(raw)}
	if len(raw) < 14 {
		return f, errShort
	}
	var ethernet flow.Packet
	ethernet.Set("dl_src", net.HardwareAddr(raw[6:12]).String())
	ethernet.Set("dl_dst", net.HardwareAddr(raw[:6]).String())
	kind, rest := binary.BigEndian.Uint16(raw[12:]), raw[14:]
	if kind == 0x8100 {
		if len(rest) < 4 {
			return f, errShort
		}
		tag := binary.BigEndian.Uint16(rest)
		ethernet.Set("dl_vlan", fmt.Sprint(tag&0xfff))
		ethernet.Set("dl_vlan_pcp", fmt.Sprint(tag>>13))
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	err := f.network(kind, rest, ethernet)
	return f, err
}

// network reads what follows the Ethernet header, whose fields come after the word for
// the protocol.
func (f *Frame) network(kind uint16, raw []byte, ethernet flow.Packet) error {
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
		return f.arp(raw)
	case flow.IPv4:
		return f.ipv4(raw, begin)
	case flow.IPv6:
		return f.ipv6(raw, begin)
	}
	begin("dl_type", fmt.Sprintf("%#04x", kind))
	return nil
}

func (f *Frame) arp(raw []byte) error {
	if len(raw) < 28 {
		return errShort
	}
	f.Packet.Set("arp_spa", netip.AddrFrom4([4]byte(raw[14:18])).String())
	f.Packet.Set("arp_tpa", netip.AddrFrom4([4]byte(raw[24:28])).String())
	f.Packet.Set("arp_op", fmt.Sprint(binary.BigEndian.Uint16(raw[6:])))
	f.Packet.Set("arp_sha", net.HardwareAddr(raw[8:14]).String())
	f.Packet.Set("arp_tha", net.HardwareAddr(raw[18:24]).String())
	return nil
}

func (f *Frame) ipv4(raw []byte, begin func(word, value string)) error {
	if len(raw) < 20 || len(raw) < int(raw[0]&15)*4 || raw[0]&15 < 5 {
		return errShort
	}
	f.protocol(raw[9], "", begin)
	f.Packet.Set("nw_src", netip.AddrFrom4([4]byte(raw[12:16])).String())
	f.Packet.Set("nw_dst", netip.AddrFrom4([4]byte(raw[16:20])).String())
	f.service(raw[1], raw[8])
	fragment := binary.BigEndian.Uint16(raw[6:])
	switch {
	case fragment&0x1fff != 0:
		f.Packet.Set("nw_frag", "later")
		return nil
	case fragment&0x2000 != 0:
		f.Packet.Set("nw_frag", "first")
	}
	return f.transport(raw[9], raw[int(raw[0]&15)*4:])
}

func (f *Frame) ipv6(raw []byte, begin func(word, value string)) error {
	if len(raw) < 40 {
		return errShort
	}
	f.protocol(raw[6], "6", begin)
	f.Packet.Set("ipv6_src", netip.AddrFrom16([16]byte(raw[8:24])).String())
	f.Packet.Set("ipv6_dst", netip.AddrFrom16([16]byte(raw[24:40])).String())
	head := binary.BigEndian.Uint32(raw)
	f.Packet.Set("ipv6_label", fmt.Sprintf("0x%05x", head&0xfffff))
	f.service(byte(head>>20), raw[7])
	return f.transport(raw[6], raw[40:])
}

// protocol begins the packet with the word for its protocol.
func (f *Frame) protocol(number uint8, version string, begin func(word, value string)) {
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

func (f *Frame) service(tos, ttl byte) {
	f.Packet.Set("nw_tos", fmt.Sprint(tos&^3))
	f.Packet.Set("nw_ecn", fmt.Sprint(tos&3))
	f.Packet.Set("nw_ttl", fmt.Sprint(ttl))
}

func (f *Frame) transport(number uint8, raw []byte) error {
	switch number {
	case flow.TCP, flow.UDP, flow.SCTP:
		if len(raw) < 4 {
			return errShort
		}
		f.Packet.Set("tp_src", fmt.Sprint(binary.BigEndian.Uint16(raw)))
		f.Packet.Set("tp_dst", fmt.Sprint(binary.BigEndian.Uint16(raw[2:])))
		if number == flow.TCP && len(raw) >= 14 {
			f.Packet.Set("tcp_flags", tcpFlags(binary.BigEndian.Uint16(raw[12:])&0xfff))
		}
	case flow.ICMP, flow.ICMPv6:
		return f.icmp(number, raw)
	}
	return nil
}

func tcpFlags(bits uint16) string {
	var names []string
	for i, name := range []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"} {
		if bits&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "0"
	}
	return strings.Join(names, "|")
}

// icmp reads an ICMP or ICMPv6 message.
func (f *Frame) icmp(number uint8, raw []byte) error {
	if len(raw) < 8 {
		return errShort
	}
	f.Packet.Set("icmp_type", fmt.Sprint(raw[0]))
	f.Packet.Set("icmp_code", fmt.Sprint(raw[1]))
	if number == flow.ICMPv6 {
		return f.icmpv6(raw)
	}
	switch raw[0] {
	case 0, 8, 13, 14, 15, 16, 17, 18:
		f.ID = binary.BigEndian.Uint16(raw[4:])
	case 3, 4, 5, 11, 12:
		f.quote(flow.IPv4, raw[8:])
	}
	return nil
}

func (f *Frame) icmpv6(raw []byte) error {
	switch raw[0] {
	case 128, 129:
		f.ID = binary.BigEndian.Uint16(raw[4:])
	case 1, 2, 3, 4:
		f.quote(flow.IPv6, raw[8:])
	case 135, 136:
		if len(raw) < 24 {
			return errShort
		}
		f.Packet.Set("nd_target", netip.AddrFrom16([16]byte(raw[8:24])).String())
		f.discovery(raw[24:])
	}
	return nil
}

// discovery reads the options of a neighbour discovery message.
func (f *Frame) discovery(raw []byte) {
	for len(raw) >= 8 && raw[1] > 0 && len(raw) >= int(raw[1])*8 {
		if name := map[byte]string{1: "nd_sll", 2: "nd_tll"}[raw[0]]; name != "" {
			f.Packet.Set(name, net.HardwareAddr(raw[2:8]).String())
		}
		raw = raw[int(raw[1])*8:]
	}
}

// quote reads the packet inside an ICMP error, as much of it as there is.
func (f *Frame) quote(kind uint16, raw []byte) {
	var inner Frame
	if err := inner.network(kind, raw, flow.Packet{}); err == nil {
		f.Quoted = &inner
	}
}

// ParseHex works like Parse for hexadecimal digits.
func ParseHex(digits string) (Frame, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return Frame{}, err
	}
	return Parse(raw)
}
