package flow

import (
	"net/netip"
	"strings"
)

// IP protocol numbers (RFC 790, RFC 4443, RFC 9260).
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
	SCTP   = 132
)

// Ethernet types.
const (
	IPv4 = 0x0800
	ARP  = 0x0806
	IPv6 = 0x86dd
)

// word is what a word of a flow stands for (ovs-fields(7), "Shorthand").
type word struct {
	ethernet  uint16
	transport uint8
	any       bool // every transport protocol
}

func wordOf(name string) (w word, ok bool) {
	switch name {
	case "ip":
		return word{IPv4, 0, true}, true
	case "ipv6":
		return word{IPv6, 0, true}, true
	case "icmp":
		return word{IPv4, ICMP, false}, true
	case "icmp6":
		return word{IPv6, ICMPv6, false}, true
	case "tcp":
		return word{IPv4, TCP, false}, true
	case "tcp6":
		return word{IPv6, TCP, false}, true
	case "udp":
		return word{IPv4, UDP, false}, true
	case "udp6":
		return word{IPv6, UDP, false}, true
	case "sctp":
		return word{IPv4, SCTP, false}, true
	case "sctp6":
		return word{IPv6, SCTP, false}, true
	case "arp":
		return word{ARP, 0, true}, true
	case "rarp":
		return word{0x8035, 0, true}, true
	case "mpls":
		return word{0x8847, 0, true}, true
	case "mplsm":
		return word{0x8848, 0, true}, true
	}
	return word{}, false
}

// EtherType returns the packet's Ethernet type, 0 if its fields don't show it.
func (p Packet) EtherType() uint16 {
	for _, f := range p.fields {
		if w, ok := wordOf(f.Name); ok && f.Value == "" {
			return w.ethernet
		}
	}
	n, _ := p.Number("dl_type")
	return uint16(n)
}

// Protocol returns the packet's IP protocol; ok is false if it is no IP packet or its
// fields don't show the protocol.
func (p Packet) Protocol() (number uint8, ok bool) {
	for _, f := range p.fields {
		if w, known := wordOf(f.Name); known && f.Value == "" && !w.any {
			return w.transport, true
		}
	}
	if t := p.EtherType(); t != IPv4 && t != IPv6 {
		return 0, false
	}
	n, ok := p.Number("nw_proto")
	return uint8(n), ok && n < 256
}

// Addresses returns the packet's source and destination addresses; ok is false if it is
// no IP packet.
func (p Packet) Addresses() (src, dst netip.Addr, ok bool) {
	from, to := p.addressFields()
	src, _ = p.Address(from)
	dst, _ = p.Address(to)
	return src, dst, src.IsValid() && dst.IsValid()
}

func (p Packet) addressFields() (src, dst string) {
	if p.EtherType() == IPv6 {
		return "ipv6_src", "ipv6_dst"
	}
	return "nw_src", "nw_dst"
}

// SetAddresses changes the packet's source and destination addresses.
func (p *Packet) SetAddresses(src, dst netip.Addr) {
	from, to := p.addressFields()
	p.Set(from, src.String())
	p.Set(to, dst.String())
}

// IsTagged reports whether the packet has a VLAN tag.
func (p Packet) IsTagged() bool {
	if tci, ok := p.Number("vlan_tci"); ok && tci&0x1000 != 0 {
		return true
	}
	return p.Has("dl_vlan") && p.Get("dl_vlan") != "0xffff"
}

// PushVLAN adds an outer VLAN tag.
func (p *Packet) PushVLAN(vid, pcp string) {
	if p.IsTagged() {
		p.Set("dl_vlan1", p.Get("dl_vlan"))
		p.Set("dl_vlan_pcp1", p.Get("dl_vlan_pcp"))
	}
	p.Delete("vlan_tci")
	p.Set("dl_vlan", vid)
	p.Set("dl_vlan_pcp", pcp)
}

// PopVLAN removes the outer VLAN tag.
func (p *Packet) PopVLAN() {
	inner, pcp := p.Get("dl_vlan1"), p.Get("dl_vlan_pcp1")
	p.Delete("dl_vlan", "dl_vlan_pcp", "dl_vlan1", "dl_vlan_pcp1", "vlan_tci", "vlan_tci1")
	if inner == "" {
		p.Set("vlan_tci", "0x0000")
		return
	}
	p.Set("dl_vlan", inner)
	p.Set("dl_vlan_pcp", pcp)
}

// DoubleTagged reports whether the packet has two VLAN tags. ofproto/trace takes no
// such packet.
func (p Packet) DoubleTagged() bool { return p.Has("dl_vlan1") }

// isLocal reports whether a field is valid only on the node where the packet is.
func isLocal(name string) bool {
	switch name {
	case "recirc_id", "dp_hash", "in_port", "metadata", "pkt_mark", "skb_priority", "actset_output", "conj_id":
		return true
	}
	for _, prefix := range []string{"ct_", "reg", "xreg", "xxreg", "tun_", "tunnel_", "gtpu_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Headers returns the packet without metadata: what another node receives of it.
func (p Packet) Headers() Packet {
	c := p.Clone()
	c.DeleteFunc(isLocal)
	c.Delete("eth")
	return c
}

// WithoutPipeline returns the packet without what a recirculation restores from its
// frozen state, or what conntrack decides: the packet as the datapath holds it.
func (p Packet) WithoutPipeline() Packet {
	c := p.Clone()
	c.DeleteFunc(func(name string) bool {
		return isLocal(name) && name != "in_port" && name != "pkt_mark" && name != "skb_priority"
	})
	c.Delete("eth")
	return c
}
