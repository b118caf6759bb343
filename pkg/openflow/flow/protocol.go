package flow

import (
	"net/netip"
	"strings"

	"ovs-offline/pkg/openflow"
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

// word is the meaning of a word in a flow (ovs-fields(7), "Shorthand").
type word struct {
	ethernet  uint16
	transport uint8
	any       bool // every transport protocol
}

// wordOf returns the meaning of a word; ok is false if it is not known.
func wordOf(name string) (w word, ok bool) {
	w.ethernet, w.transport, ok = openflow.Protocol(name)
	w.any = w.transport == 0
	return w, ok
}

// EtherType returns the packet's Ethernet type, 0 if its fields don't show it.
func (p Packet) EtherType() uint16 {
	for _, field := range p.fields {
		if known, ok := wordOf(field.Name); ok && field.Value == "" {
			return known.ethernet
		}
	}
	n, _ := p.Number("dl_type")
	return uint16(n)
}

// Protocol returns the packet's IP protocol; ok is false if the packet is not IP or its fields
// don't show the protocol.
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

// Addresses returns the packet's source and destination addresses; ok is false if the packet
// is not IP.
func (p Packet) Addresses() (src, dst netip.Addr, ok bool) {
	from, to := addressFields(p.EtherType())
	src, _ = p.Address(from)
	dst, _ = p.Address(to)
	return src, dst, src.IsValid() && dst.IsValid()
}

// addressFields returns the names of the fields with the IP addresses.
func addressFields(etherType uint16) (src, dst string) {
	if etherType == IPv6 {
		return "ipv6_src", "ipv6_dst"
	}
	return "nw_src", "nw_dst"
}

// SetAddresses changes the packet's source and destination addresses.
func (p *Packet) SetAddresses(src, dst netip.Addr) {
	from, to := addressFields(p.EtherType())
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

// DoubleTagged reports whether the packet has two VLAN tags. ofproto/trace does not take such a
// packet as text.
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
	headers := p.Clone()
	headers.DeleteFunc(isLocal)
	headers.Delete("eth")
	return headers
}

// WithoutPipeline returns the packet without what a recirculation restores from its
// frozen state, or what conntrack decides: the packet as the datapath holds it.
func (p Packet) WithoutPipeline() Packet {
	packet := p.Clone()
	packet.DeleteFunc(func(name string) bool {
		return isLocal(name) && name != "in_port" && name != "pkt_mark" && name != "skb_priority"
	})
	packet.Delete("eth")
	return packet
}
