package sets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// host is an end point of a set.
type host struct {
	label    string // of its port
	mac      string
	ip, ip6  string
	gw, vlan string // the MAC of its router; its VLAN tag, "" for none
}

// frame describes a packet. Each sent frame carries its number as the identification of
// IPv4 or as the flow label of IPv6, which no switch changes: that is how a frame that
// comes out is recognised.
type frame struct {
	from         string // the label of the port at which it is put in
	src, dst     string // MAC addresses
	vlan         uint16
	sip, dip     string
	ttl, tos     uint8
	proto        string // tcp, udp, sctp, icmp, or arp, raw
	sport, dport uint16
	flags        string // of TCP: a subset of SAFRP
	seq, ack     uint32
	icmp         [2]uint8 // type and code
	icmpID       uint16
	inner        []byte // the packet to which an ICMP error refers
	size         int    // of the IP packet; 0: as it comes
	df           bool
	more         bool   // a fragment to which more belong
	offset       uint16 // of a fragment, in units of 8 bytes

	// build returns the layers of a frame that is neither of the above.
	build func() []gopacket.SerializableLayer
	// later returns the frame once earlier packets have come out.
	later func() (frame, error)
}

// between returns a frame without a protocol from a host to an address through the host's
// router, or to a neighbour if near has its MAC.
func (h host) between(ip string, near []string) frame {
	f := frame{from: h.label, src: h.mac, dst: h.gw, dip: ip, ttl: 64}
	if len(near) > 0 {
		f.dst = near[0]
	}
	f.sip = h.ip
	if netip.MustParseAddr(ip).Is6() {
		f.sip = h.ip6
	}
	if h.vlan != "" {
		_, _ = fmt.Sscan(h.vlan, &f.vlan)
	}
	return f
}

// tcp returns the first packet of a TCP connection.
func (h host) tcp(ip string, port uint16, near ...string) frame {
	f := h.between(ip, near)
	f.proto, f.dport, f.flags, f.seq = "tcp", port, "S", 1000
	return f
}

func (h host) udp(ip string, port uint16, near ...string) frame {
	f := h.between(ip, near)
	f.proto, f.dport = "udp", port
	return f
}

func (h host) sctp(ip string, port uint16, near ...string) frame {
	f := h.between(ip, near)
	f.proto, f.dport = "sctp", port
	return f
}

// ping returns an echo request.
func (h host) ping(ip string, near ...string) frame {
	f := h.between(ip, near)
	f.proto, f.icmp = "icmp", [2]uint8{layers.ICMPv4TypeEchoRequest, 0}
	if f.is6() {
		f.icmp[0] = layers.ICMPv6TypeEchoRequest
	}
	return f
}

// arp returns a request for the MAC of an address.
func (h host) arp(ip string) frame {
	return h.arpAs(h.ip, ip)
}

// arpAs returns an ARP request with another sender address.
func (h host) arpAs(sender, ip string) frame {
	f := h.between(ip, []string{"ff:ff:ff:ff:ff:ff"})
	f.proto = "arp"
	f.sip, f.flags = sender, "request"
	return f
}

// neighbour returns a neighbour solicitation.
func (h host) neighbour(ip string) frame {
	target := netip.MustParseAddr(ip).As16()
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]})
	f := h.between(group.String(), []string{fmt.Sprintf("33:33:ff:%02x:%02x:%02x", target[13], target[14], target[15])})
	f.proto, f.ttl = "raw", 255
	f.build = func() []gopacket.SerializableLayer {
		return []gopacket.SerializableLayer{
			&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)},
			&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(ip), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: mac(h.mac)}}},
		}
	}
	return f
}

// advertise returns a neighbour advertisement of the host's own IPv6 address.
func (h host) advertise(to, near string) frame {
	f := h.between(to, []string{near})
	f.proto, f.ttl = "raw", 255
	f.build = func() []gopacket.SerializableLayer {
		return []gopacket.SerializableLayer{
			&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)},
			&layers.ICMPv6NeighborAdvertisement{Flags: 0x60, TargetAddress: net.ParseIP(h.ip6), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: mac(h.mac)}}},
		}
	}
	return f
}

// routers returns a router solicitation.
func (h host) routers(local string) frame {
	f := h.between("ff02::2", []string{"33:33:00:00:00:02"})
	f.proto, f.ttl, f.sip = "raw", 255, local
	f.build = func() []gopacket.SerializableLayer {
		return []gopacket.SerializableLayer{
			&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeRouterSolicitation, 0)},
			&layers.ICMPv6RouterSolicitation{},
		}
	}
	return f
}

// discover returns the first packet of DHCP.
func (h host) discover() frame {
	f := h.between("255.255.255.255", []string{"ff:ff:ff:ff:ff:ff"})
	f.proto, f.sip = "raw", "0.0.0.0"
	f.build = func() []gopacket.SerializableLayer {
		return []gopacket.SerializableLayer{
			&layers.UDP{SrcPort: 68, DstPort: 67},
			&layers.DHCPv4{Operation: layers.DHCPOpRequest, HardwareType: layers.LinkTypeEthernet, HardwareLen: 6, Xid: 0x1a2b3c4d, ClientHWAddr: mac(h.mac), Options: layers.DHCPOptions{
				layers.NewDHCPOption(layers.DHCPOptMessageType, []byte{byte(layers.DHCPMsgTypeDiscover)}),
			}},
		}
	}
	return f
}

func (f frame) is6() bool { return netip.MustParseAddr(f.dip).Is6() }

func mac(text string) net.HardwareAddr {
	m, err := net.ParseMAC(text)
	if err != nil {
		panic(err) // the lists of packets have constant addresses
	}
	return m
}

// bytes returns the frame with its number, and sums and lengths filled in.
func (f frame) bytes(id int) ([]byte, error) {
	list, err := f.layers(id)
	if err != nil {
		return nil, err
	}
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, options, list...); err != nil {
		return nil, fmt.Errorf("packet %d: %w", id, err)
	}
	return buffer.Bytes(), nil
}

func (f frame) layers(id int) ([]gopacket.SerializableLayer, error) {
	eth := &layers.Ethernet{SrcMAC: mac(f.src), DstMAC: mac(f.dst)}
	list := []gopacket.SerializableLayer{eth}
	kind := &eth.EthernetType
	if f.vlan != 0 {
		tag := &layers.Dot1Q{VLANIdentifier: f.vlan}
		*kind = layers.EthernetTypeDot1Q
		kind = &tag.Type
		list = append(list, tag)
	}
	if f.proto == "arp" {
		*kind = layers.EthernetTypeARP
		return append(list, f.arpLayer()), nil
	}
	ip, network := f.ipLayer(id)
	*kind = layers.EthernetTypeIPv4
	if f.is6() {
		*kind = layers.EthernetTypeIPv6
	}
	upper, err := f.upper(id, network)
	return append(append(list, ip), upper...), err
}

func (f frame) arpLayer() gopacket.SerializableLayer {
	a := &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: mac(f.src), SourceProtAddress: net.ParseIP(f.sip).To4(), DstHwAddress: make([]byte, 6), DstProtAddress: net.ParseIP(f.dip).To4()}
	if f.flags == "reply" {
		a.Operation, a.DstHwAddress = layers.ARPReply, mac(f.dst)
	}
	return a
}

var protocols = map[string]layers.IPProtocol{"tcp": layers.IPProtocolTCP, "udp": layers.IPProtocolUDP, "sctp": layers.IPProtocolSCTP}

func (f frame) ipLayer(id int) (gopacket.SerializableLayer, gopacket.NetworkLayer) {
	protocol := protocols[f.proto]
	if f.is6() {
		switch {
		case f.proto == "icmp":
			protocol = layers.IPProtocolICMPv6
		case f.proto == "raw":
			protocol = rawProtocol(f.build())
		}
		ip := &layers.IPv6{Version: 6, SrcIP: net.ParseIP(f.sip), DstIP: net.ParseIP(f.dip), HopLimit: f.ttl, TrafficClass: f.tos, FlowLabel: uint32(id), NextHeader: protocol}
		return ip, ip
	}
	switch {
	case f.proto == "icmp":
		protocol = layers.IPProtocolICMPv4
	case f.proto == "raw":
		protocol = rawProtocol(f.build())
	}
	ip := &layers.IPv4{Version: 4, SrcIP: net.ParseIP(f.sip).To4(), DstIP: net.ParseIP(f.dip).To4(), TTL: f.ttl, TOS: f.tos, Id: uint16(id), Protocol: protocol, FragOffset: f.offset}
	if f.df {
		ip.Flags |= layers.IPv4DontFragment
	}
	if f.more {
		ip.Flags |= layers.IPv4MoreFragments
	}
	return ip, ip
}

func rawProtocol(list []gopacket.SerializableLayer) layers.IPProtocol {
	switch list[0].(type) {
	case *layers.UDP:
		return layers.IPProtocolUDP
	case *layers.ICMPv6:
		return layers.IPProtocolICMPv6
	}
	return layers.IPProtocolNoNextHeader
}

// upper returns the layers above IP.
func (f frame) upper(id int, network gopacket.NetworkLayer) ([]gopacket.SerializableLayer, error) {
	payload := gopacket.Payload("ovs-lab.")
	sport := f.sport
	if sport == 0 {
		sport = uint16(20000 + id)
	}
	var list []gopacket.SerializableLayer
	header := 0
	switch f.proto {
	case "tcp":
		t := &layers.TCP{SrcPort: layers.TCPPort(sport), DstPort: layers.TCPPort(f.dport), Seq: f.seq, Ack: f.ack, Window: 65535}
		for _, c := range f.flags {
			switch c {
			case 'S':
				t.SYN, payload = true, nil
			case 'A':
				t.ACK = true
			case 'F':
				t.FIN = true
			case 'R':
				t.RST, payload = true, nil
			case 'P':
				t.PSH = true
			}
		}
		if err := t.SetNetworkLayerForChecksum(network); err != nil {
			return nil, err
		}
		list, header = append(list, t), 20
	case "udp":
		u := &layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: layers.UDPPort(f.dport)}
		if err := u.SetNetworkLayerForChecksum(network); err != nil {
			return nil, err
		}
		list, header = append(list, u), 8
	case "sctp":
		list = append(list, &layers.SCTP{SrcPort: layers.SCTPPort(sport), DstPort: layers.SCTPPort(f.dport)})
		return append(list, &layers.SCTPInit{SCTPChunk: layers.SCTPChunk{Type: layers.SCTPChunkTypeInit, Length: 20}, InitiateTag: uint32(id), AdvertisedReceiverWindowCredit: 65535, OutboundStreams: 1, InboundStreams: 1, InitialTSN: 1}), nil
	case "icmp":
		return f.icmpLayers(sport, payload, network)
	case "raw":
		list = f.build()
		for _, l := range list {
			if sum, needs := l.(interface {
				SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
			}); needs {
				if err := sum.SetNetworkLayerForChecksum(network); err != nil {
					return nil, err
				}
			}
		}
		return list, nil
	default:
		return nil, fmt.Errorf("no protocol %q", f.proto)
	}
	return append(list, f.padded(payload, header)), nil
}

func (f frame) icmpLayers(id uint16, payload gopacket.Payload, network gopacket.NetworkLayer) ([]gopacket.SerializableLayer, error) {
	if f.icmpID != 0 {
		id = f.icmpID
	}
	if f.inner != nil {
		id, payload = 0, f.inner
	} else {
		payload = f.padded(payload, 8)
	}
	if !f.is6() {
		seq := uint16(1)
		if f.inner != nil {
			seq = 0
		}
		return []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(f.icmp[0], f.icmp[1]), Id: id, Seq: seq}, payload}, nil
	}
	i := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(f.icmp[0], f.icmp[1])}
	if err := i.SetNetworkLayerForChecksum(network); err != nil {
		return nil, err
	}
	if f.inner != nil {
		return []gopacket.SerializableLayer{i, gopacket.Payload(append(make([]byte, 4), f.inner...))}, nil
	}
	return []gopacket.SerializableLayer{i, &layers.ICMPv6Echo{Identifier: id, SeqNumber: 1}, payload}, nil
}

// padded returns the payload that makes the IP packet as long as the frame says.
func (f frame) padded(payload gopacket.Payload, header int) gopacket.Payload {
	above := 20
	if f.is6() {
		above = 40
	}
	if f.size == 0 {
		return payload
	}
	full := make([]byte, f.size-above-header)
	copy(full, payload)
	return full
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

// marks of a frame that came out.
type marks struct {
	number    int    // of the sent packet that it is; 0 for another
	kind      string // of the innermost packet: arp, icmp, ...
	ports     [2]uint16
	icmpType  uint8
	announce  bool // a host announces its own address
	tunnelled bool // the frame is the header of a tunnel
}

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
		case *layers.ICMPv4:
			m.kind, m.icmpType = "icmp", l.TypeCode.Type()
		case *layers.ICMPv6:
			m.kind, m.icmpType = "icmp6", l.TypeCode.Type()
		case *layers.Geneve, *layers.VXLAN, *layers.GRE:
			m.tunnelled = true
		case *layers.ARP:
			m.kind = "arp"
			m.announce = net.IP(l.SourceProtAddress).Equal(net.IP(l.DstProtAddress))
		}
	}
	return m
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
