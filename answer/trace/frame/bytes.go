package frame

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"ovs-offline/pkg/openflow/flow"
)

// Bytes returns the frame as a network device takes it, with the sums of its headers. A packet without a
// size, or with one that is too small for its headers, has no payload. Of a fragment, whose other
// parts are not known, only the headers are right.
func (f Frame) Bytes() ([]byte, error) {
	raw, err := f.serialize(nil)
	if err != nil || f.Size <= len(raw) || f.Quoted != nil || f.Packet.Has("nd_target") {
		return raw, err
	}
	return f.serialize(make(gopacket.Payload, f.Size-len(raw)))
}

// serialize returns the frame with a payload behind its headers.
func (f Frame) serialize(payload gopacket.Payload) ([]byte, error) {
	w := &builder{packet: f.Packet, id: f.ID, quoted: f.Quoted, mayFragment: f.MayFragment}
	list := append(w.layers(), payload)
	if w.err != nil {
		return nil, fmt.Errorf("the packet %s can't be written as a frame: %w", f.Packet, w.err)
	}
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		return nil, fmt.Errorf("the packet %s can't be written as a frame: %w", f.Packet, err)
	}
	return buffer.Bytes(), nil
}

// layers returns the headers of the frame.
func (w *builder) layers() []gopacket.SerializableLayer {
	list := w.ethernet()
	switch w.packet.EtherType() {
	case flow.ARP:
		list = append(list, w.arp())
	case flow.IPv4:
		ip := w.ipv4()
		list = append(list, ip)
		list = append(list, w.transport(ip)...)
	case flow.IPv6:
		ip := w.ipv6()
		list = append(list, ip, w.fragment(ip))
		list = append(list, w.transport(ip)...)
	}
	return list
}

// builder makes the layers of a frame, and keeps the first error.
type builder struct {
	packet      flow.Packet
	id          uint16 // of an ICMP query
	quoted      *Frame // in an ICMP error
	mayFragment bool
	err         error
}

func (w *builder) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// number returns the value of a field, 0 if the packet lacks it.
func (w *builder) number(name string) uint64 {
	n, ok := w.packet.Number(name)
	if !ok && w.packet.Has(name) {
		w.fail(fmt.Errorf("%s=%s is not a number", name, w.packet.Get(name)))
	}
	return n
}

func (w *builder) mac(name string) net.HardwareAddr {
	if !w.packet.Has(name) {
		return make(net.HardwareAddr, 6)
	}
	mac, err := net.ParseMAC(w.packet.Get(name))
	if err != nil {
		w.fail(err)
	}
	return mac
}

// address returns the value of a field with an address that has as many bytes as like.
func (w *builder) address(name string, like netip.Addr) net.IP {
	if !w.packet.Has(name) {
		return like.AsSlice()
	}
	address, ok := w.packet.Address(name)
	if !ok || address.BitLen() != like.BitLen() {
		w.fail(fmt.Errorf("%s=%s is not an IPv%d address", name, w.packet.Get(name), map[int]int{32: 4, 128: 6}[like.BitLen()]))
	}
	return address.AsSlice()
}

func (w *builder) ethernet() []gopacket.SerializableLayer {
	eth := &layers.Ethernet{SrcMAC: w.mac("dl_src"), DstMAC: w.mac("dl_dst"), EthernetType: layers.EthernetType(w.packet.EtherType())}
	list := []gopacket.SerializableLayer{eth}
	next := &eth.EthernetType
	for _, suffix := range []string{"", "1"} {
		if !w.packet.Has("dl_vlan" + suffix) {
			break
		}
		tag := &layers.Dot1Q{VLANIdentifier: uint16(w.number("dl_vlan" + suffix)), Priority: uint8(w.number("dl_vlan_pcp" + suffix)), Type: *next}
		*next, next = layers.EthernetTypeDot1Q, &tag.Type
		list = append(list, tag)
	}
	return list
}

func (w *builder) arp() gopacket.SerializableLayer {
	none := netip.IPv4Unspecified()
	return &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: uint16(w.number("arp_op")),
		SourceHwAddress: w.mac("arp_sha"), SourceProtAddress: w.address("arp_spa", none), DstHwAddress: w.mac("arp_tha"), DstProtAddress: w.address("arp_tpa", none)}
}

func (w *builder) protocol() layers.IPProtocol {
	number, _ := w.packet.Protocol()
	return layers.IPProtocol(number)
}

func (w *builder) tos() uint8 { return uint8(w.number("nw_tos"))&^3 | uint8(w.number("nw_ecn"))&3 }

func (w *builder) ipv4() *layers.IPv4 {
	none := netip.IPv4Unspecified()
	ip := &layers.IPv4{Version: 4, TOS: w.tos(), TTL: uint8(w.number("nw_ttl")), Protocol: w.protocol(), SrcIP: w.address("nw_src", none), DstIP: w.address("nw_dst", none)}
	switch w.packet.Get("nw_frag") {
	case "first":
		ip.Flags = layers.IPv4MoreFragments
	case "later":
		ip.FragOffset = 1
	default:
		if !w.mayFragment {
			ip.Flags = layers.IPv4DontFragment
		}
	}
	return ip
}

func (w *builder) ipv6() *layers.IPv6 {
	none := netip.IPv6Unspecified()
	return &layers.IPv6{Version: 6, TrafficClass: w.tos(), FlowLabel: uint32(w.number("ipv6_label")), NextHeader: w.protocol(), HopLimit: uint8(w.number("nw_ttl")),
		SrcIP: w.address("ipv6_src", none), DstIP: w.address("ipv6_dst", none)}
}

// fragment returns the fragment header that follows an IPv6 header, empty for a packet that
// is not a fragment.
func (w *builder) fragment(ip *layers.IPv6) gopacket.SerializableLayer {
	raw := gopacket.Payload{byte(ip.NextHeader), 0, 0, 0, 0, 0, 0, 1}
	switch w.packet.Get("nw_frag") {
	case "first":
		raw[3] = 1 // more of them follow
	case "later":
		raw[0], raw[3] = byte(layers.IPProtocolNoNextHeader), 8
	default:
		return gopacket.Payload{}
	}
	ip.NextHeader = layers.IPProtocolIPv6Fragment
	return raw
}

// transport returns the header of the packet's protocol, and what follows it.
func (w *builder) transport(ip gopacket.NetworkLayer) []gopacket.SerializableLayer {
	if w.packet.Get("nw_frag") == "later" {
		return []gopacket.SerializableLayer{gopacket.Payload(make([]byte, 8))}
	}
	src, dst := uint16(w.number("tp_src")), uint16(w.number("tp_dst"))
	number, _ := w.packet.Protocol()
	var header gopacket.SerializableLayer
	var err error
	switch number {
	case flow.TCP:
		tcp := tcpHeader(tcpBits(w.packet.Get("tcp_flags")))
		tcp.SrcPort, tcp.DstPort = layers.TCPPort(src), layers.TCPPort(dst)
		header, err = tcp, tcp.SetNetworkLayerForChecksum(ip)
	case flow.UDP:
		udp := &layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst)}
		header, err = udp, udp.SetNetworkLayerForChecksum(ip)
	case flow.SCTP:
		header = &layers.SCTP{SrcPort: layers.SCTPPort(src), DstPort: layers.SCTPPort(dst)}
	case flow.ICMP:
		return []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(w.icmp()), Id: w.id}, w.inner()}
	case flow.ICMPv6:
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(w.icmp())}
		if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
			w.fail(err)
		}
		return []gopacket.SerializableLayer{icmp, gopacket.Payload{byte(w.id >> 8), byte(w.id), 0, 0}, w.discovery(), w.inner()}
	default:
		return nil
	}
	if err != nil {
		w.fail(err)
	}
	return []gopacket.SerializableLayer{header}
}

// icmp returns the type and the code of an ICMP message.
func (w *builder) icmp() (kind, code uint8) {
	return uint8(w.number("icmp_type")), uint8(w.number("icmp_code"))
}

// inner returns the packet inside an ICMP error, from its IP header on; nothing for another packet.
func (w *builder) inner() gopacket.Payload {
	const ethernet = 14
	if w.quoted == nil {
		return nil
	}
	raw, err := w.quoted.Bytes()
	if err != nil {
		w.fail(err)
	}
	return gopacket.Payload(raw[min(ethernet, len(raw)):])
}

// tcpHeader returns a TCP header with the flags in these bits of its bytes 12 and 13.
func tcpHeader(bits uint16) *layers.TCP {
	tcp := &layers.TCP{Window: 0xffff}
	for i, flag := range []*bool{&tcp.FIN, &tcp.SYN, &tcp.RST, &tcp.PSH, &tcp.ACK, &tcp.URG, &tcp.ECE, &tcp.CWR, &tcp.NS} {
		*flag = bits>>i&1 == 1
	}
	return tcp
}

// discovery returns the target and the option of a neighbour discovery message, nil for a
// packet without them.
func (w *builder) discovery() gopacket.Payload {
	if !w.packet.Has("nd_target") {
		return nil
	}
	raw := gopacket.Payload(w.address("nd_target", netip.IPv6Unspecified()))
	for kind, name := range []string{1: "nd_sll", 2: "nd_tll"} {
		if name != "" && w.packet.Has(name) {
			raw = slices.Concat(raw, gopacket.Payload{byte(kind), 1}, gopacket.Payload(w.mac(name)))
		}
	}
	return raw
}

// tcpBits is the reverse of tcpFlags.
func tcpBits(text string) (bits uint16) {
	for name := range strings.SplitSeq(text, "|") {
		if i := slices.Index(tcpNames(), name); i >= 0 {
			bits |= 1 << i
		}
	}
	return bits
}
