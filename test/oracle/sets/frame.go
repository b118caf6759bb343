package sets

import (
	"fmt"
	"net"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// frame describes a packet. Each sent frame carries its number as the identification of
// IPv4 or as the flow label of IPv6, which no switch changes: that is how a frame that
// comes out is recognised.
type frame struct {
	from         string // the label of the port at which it is put in
	src, dst     string // MAC addresses
	vlan         uint16
	sip, dip     string
	ttl          uint8
	proto        string // tcp, udp, sctp, icmp, or arp, raw
	sport, dport uint16
	flags        string // of TCP: a subset of SAFRP
	seq, ack     uint32
	icmp         [2]uint8 // type and code
	icmpID       uint16
	inner        []byte // the packet to which an ICMP error refers
	size         int    // of the IP packet; 0: as it comes
	df           bool
	fragment     *fragment // the part of the packet that is sent; nil for all of it

	// build returns the layers of a frame that is neither of the above.
	build func() []gopacket.SerializableLayer
	// later returns the frame once earlier packets have come out.
	later func() (frame, error)
}

func (f frame) is6() bool { return strings.Contains(f.dip, ":") }

// mac returns a MAC address. The lists of packets have valid ones; without, the frame
// cannot be serialized.
func mac(text string) net.HardwareAddr {
	m, _ := net.ParseMAC(text)
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
	if f.fragment != nil {
		return f.fragment.cut(buffer.Bytes()), nil
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
		ip := &layers.IPv6{Version: 6, SrcIP: net.ParseIP(f.sip), DstIP: net.ParseIP(f.dip), HopLimit: f.ttl, FlowLabel: uint32(id), NextHeader: protocol}
		return ip, ip
	}
	switch {
	case f.proto == "icmp":
		protocol = layers.IPProtocolICMPv4
	case f.proto == "raw":
		protocol = rawProtocol(f.build())
	}
	ip := &layers.IPv4{Version: 4, SrcIP: net.ParseIP(f.sip).To4(), DstIP: net.ParseIP(f.dip).To4(), TTL: f.ttl, Id: uint16(id), Protocol: protocol}
	if f.df {
		ip.Flags |= layers.IPv4DontFragment
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
