package sets

import (
	"fmt"
	"net"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// host is an end point of a set.
type host struct {
	label   string // of its port
	mac     string
	ip, ip6 string
	gw      string // the MAC of its router
	vlan    uint16 // the tag of its packets; 0 for none
}

// between returns a frame without a protocol from a host to an address through the host's
// router, or to a neighbour if near has its MAC.
func (h host) between(ip string, near []string) frame {
	f := frame{from: h.label, src: h.mac, dst: h.gw, dip: ip, ttl: 64}
	if len(near) > 0 {
		f.dst = near[0]
	}
	f.sip = h.ip
	if f.is6() {
		f.sip = h.ip6
	}
	f.vlan = h.vlan
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
	target := net.ParseIP(ip)
	group := slices.Concat(net.ParseIP("ff02::1:ff00:0")[:13], target[13:])
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
