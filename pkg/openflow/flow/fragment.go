package flow

import "strings"

// ipv6Fragment is the protocol that Open vSwitch gives a later fragment of IPv6 (RFC 8200).
const ipv6Fragment = "44"

// isUpper reports whether a field is of the header that follows the IP header.
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
	fragment := p.Clone()
	fragment.Set("nw_frag", kind)
	if kind == "first" {
		return fragment
	}
	fragment.DeleteFunc(isUpper)
	if fragment.EtherType() != IPv6 {
		return fragment
	}
	for i, field := range fragment.fields {
		if w, ok := wordOf(field.Name); ok && field.Value == "" && !w.any {
			fragment.fields[i].Name = "ipv6"
		}
	}
	fragment.Set("nw_proto", ipv6Fragment)
	return fragment
}

// Datagram returns the packet that a fragment is a part of. What follows the IP header is
// taken from the datagram's first fragment.
func (p Packet) Datagram(first Packet) Packet {
	datagram := first.Clone()
	for _, field := range p.fields {
		if _, word := wordOf(field.Name); !isUpper(field.Name) && field.Name != "nw_proto" && (field.Value != "" || !word) {
			datagram.Set(field.Name, field.Value)
		}
	}
	datagram.Delete("nw_frag")
	return datagram
}
