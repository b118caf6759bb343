package flow

import "strings"

// ipv6Fragment is the protocol that Open vSwitch gives a later fragment of IPv6 (RFC 8200).
const ipv6Fragment = "44"

// isUpper reports whether a field is one of the header that follows those of IP.
func isUpper(name string) bool {
	for _, prefix := range []string{"tp_", "tcp_", "icmp_", "nd_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Fragmentation returns "first" or "later" for a fragment, "" for another packet.
func (p Packet) Fragmentation() string {
	if kind := p.Get("nw_frag"); kind == "first" || kind == "later" {
		return kind
	}
	return ""
}

// Fragment returns a fragment of the packet: of the kind "first" or "later".
func (p Packet) Fragment(kind string) Packet {
	c := p.Clone()
	c.Set("nw_frag", kind)
	if kind == "first" {
		return c
	}
	c.DeleteFunc(isUpper)
	if c.EtherType() != IPv6 {
		return c
	}
	for i, f := range c.fields {
		if w, ok := wordOf(f.Name); ok && f.Value == "" && !w.any {
			c.fields[i].Name = "ipv6"
		}
	}
	c.Set("nw_proto", ipv6Fragment)
	return c
}

// Datagram returns the packet that a fragment is a part of. What follows the IP header is
// taken from the datagram's first fragment.
func (p Packet) Datagram(first Packet) Packet {
	c := first.Clone()
	for _, f := range p.fields {
		if _, word := wordOf(f.Name); !isUpper(f.Name) && f.Name != "nw_proto" && (f.Value != "" || !word) {
			c.Set(f.Name, f.Value)
		}
	}
	c.Delete("nw_frag")
	return c
}
