package sets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// marks of a frame that came out.
type marks struct {
	number    int    // of the sent packet that it is; 0 for another
	quoted    int    // of the sent packet that an ICMP error of IPv4 or IPv6 is about; 0 for another
	kind      string // of the innermost packet: arp, icmp, ...
	ports     [2]uint16
	icmpType  uint8
	announce  bool // a host announces its own address
	tunnelled bool // the frame is the header of a tunnel
	bfd       bool // it belongs to a BFD session, which sends all the time
}

// bfdPort is the port of BFD control packets (RFC 5881, 4).
const bfdPort = 3784

// read returns the marks of the innermost packet of a frame.
func read(raw []byte) marks {
	var m marks
	for _, layer := range gopacket.NewPacket(raw, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true}).Layers() {
		switch l := layer.(type) {
		case *layers.IPv4:
			m.number = int(l.Id)
		case *layers.IPv6:
			m.number = int(l.FlowLabel)
		case *layers.TCP:
			m.kind, m.ports = "tcp", [2]uint16{uint16(l.SrcPort), uint16(l.DstPort)}
		case *layers.UDP:
			m.kind, m.ports = "udp", [2]uint16{uint16(l.SrcPort), uint16(l.DstPort)}
			m.bfd = m.tunnelled && l.DstPort == bfdPort
		case *layers.ICMPv4:
			m.kind, m.icmpType = "icmp", l.TypeCode.Type()
			if l.TypeCode.Type() != layers.ICMPv4TypeEchoReply && l.TypeCode.Type() != layers.ICMPv4TypeEchoRequest {
				m.quoted = numberIn(l.Payload)
			}
		case *layers.ICMPv6:
			m.kind, m.icmpType = "icmp6", l.TypeCode.Type()
			const reserved, query = 4, 128 // RFC 4443, 2.1 and 3
			if l.TypeCode.Type() < query && len(l.Payload) > reserved {
				m.quoted = numberIn(l.Payload[reserved:])
			}
		case *layers.Geneve, *layers.VXLAN, *layers.GRE:
			m.tunnelled = true
		case *layers.IGMP, *layers.IGMPv1or2:
			m.kind = "igmp"
		case *layers.ARP:
			m.kind = "arp"
			m.announce = net.IP(l.SourceProtAddress).Equal(net.IP(l.DstProtAddress))
		}
	}
	return m
}

// numberIn returns the number in the IP header at the beginning of bytes, 0 for none.
func numberIn(raw []byte) int {
	switch {
	case len(raw) >= 20 && raw[0]>>4 == 4:
		return int(binary.BigEndian.Uint16(raw[4:]))
	case len(raw) >= 40 && raw[0]>>4 == 6:
		return int(binary.BigEndian.Uint32(raw) & 0xfffff)
	}
	return 0
}

// answers reports whether a frame that came out, and whose number is that of a frame that
// was sent, is the same packet turned round: an answer that the network made of it.
func (m marks) answers(sent marks) bool {
	switch m.kind {
	case "icmp", "icmp6":
		return m.kind == sent.kind && m.icmpType != sent.icmpType
	case "udp", "tcp":
		return m.kind == sent.kind && m.ports == [2]uint16{sent.ports[1], sent.ports[0]}
	}
	return false
}

// parse returns the frame that bytes hold, as far as an answer needs it.
func parse(raw []byte) (frame, error) {
	p := gopacket.NewPacket(raw, layers.LayerTypeEthernet, gopacket.Default)
	eth, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok {
		return frame{}, errors.New("no Ethernet frame")
	}
	f := frame{src: eth.SrcMAC.String(), dst: eth.DstMAC.String(), ttl: 64}
	for _, layer := range p.Layers() {
		switch l := layer.(type) {
		case *layers.Dot1Q:
			f.vlan = l.VLANIdentifier
		case *layers.IPv4:
			f.sip, f.dip = l.SrcIP.String(), l.DstIP.String()
		case *layers.IPv6:
			f.sip, f.dip = l.SrcIP.String(), l.DstIP.String()
		case *layers.TCP:
			f.proto, f.sport, f.dport, f.seq, f.ack = "tcp", uint16(l.SrcPort), uint16(l.DstPort), l.Seq, l.Ack
		case *layers.UDP:
			f.proto, f.sport, f.dport = "udp", uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.SCTP:
			f.proto, f.sport, f.dport = "sctp", uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.ICMPv4:
			f.proto, f.icmp, f.icmpID = "icmp", [2]uint8{l.TypeCode.Type(), l.TypeCode.Code()}, l.Id
		case *layers.ICMPv6:
			f.proto, f.icmp = "icmp", [2]uint8{l.TypeCode.Type(), l.TypeCode.Code()}
		case *layers.ICMPv6Echo:
			f.icmpID = l.Identifier
		}
	}
	if f.proto == "" {
		return f, fmt.Errorf("no answer is known to % x", raw)
	}
	return f, nil
}

// reversed returns the answer to a frame, as a host at the port with that label sends it.
func (f frame) reversed(label string) frame {
	f.from = label
	f.src, f.dst = f.dst, f.src
	f.sip, f.dip = f.dip, f.sip
	f.sport, f.dport = f.dport, f.sport
	f.seq, f.ack = f.ack, f.seq
	switch f.icmp[0] {
	case layers.ICMPv4TypeEchoRequest:
		f.icmp[0] = layers.ICMPv4TypeEchoReply
	case layers.ICMPv6TypeEchoRequest:
		f.icmp[0] = layers.ICMPv6TypeEchoReply
	}
	return f
}
