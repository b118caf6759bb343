// Package flow holds a packet as the ordered fields of the text that ofproto/trace
// prints ("Flow: ...") and takes. Field names are as in the printed text: tp_src for
// the source port of every protocol, dl_src and nw_src for addresses. Input returns the
// text with the names that ofproto/trace accepts.
package flow

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
)

// Packet is a packet with its metadata. The zero Packet has no fields. Methods that
// change a packet don't change copies made with Clone.
type Packet struct {
	fields
	below *Packet // what an MPLS header that was added hides; it never changes
}

// maxFields bounds a packet: a flow has fewer than 200 different fields.
const maxFields = 256

// Parse reads the text of a packet, without the heading "Flow: ".
func Parse(text string) (Packet, error) {
	var packet Packet
	for token := range openflow.Tokens(strings.TrimSpace(text)) {
		name, value, valued := strings.Cut(token, "=")
		if !isName(name) || valued && (value == "" || strings.ContainsFunc(value, isBlank)) {
			return Packet{}, fmt.Errorf("%q is not a field of a packet in the notation of ofproto/trace", phrase.Shorten(token, 80))
		}
		if len(packet.fields) == maxFields {
			return Packet{}, fmt.Errorf("a packet has more than %d fields", maxFields)
		}
		packet.Set(PrintedName(name), value)
	}
	return packet, nil
}

// isName reports whether a text can be the name of a field.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(character rune) bool {
		return character != '_' && (character < 'a' || character > 'z') && (character < 'A' || character > 'Z') && (character < '0' || character > '9')
	})
}

// isBlank reports whether a character is a space or one that can't be seen: no value has one.
func isBlank(character rune) bool { return unicode.IsSpace(character) || unicode.IsControl(character) }

// PrintedName returns the name by which ofproto/trace prints a field that has several
// names (ovs-fields(7)).
func PrintedName(name string) string {
	switch name {
	case "vlan_vid":
		return "dl_vlan"
	case "gtpu_flags", "gtpu_msgtype": // to OVS 3.1
		return name
	}
	printed, _ := openflow.FieldName(name)
	return printed
}

// String returns the packet as ofproto/trace prints it.
func (p Packet) String() string {
	var b strings.Builder
	for i, field := range p.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		write(&b, field.Name, field.Value)
	}
	return b.String()
}

// write appends a field.
func write(b *strings.Builder, name, value string) {
	b.WriteString(name)
	if value != "" {
		b.WriteByte('=')
		b.WriteString(value)
	}
}

// Input returns the packet as ofproto/trace takes it. It leaves out what can't be fed
// back: the word "eth", empty further VLAN tags, and the all-zero link-layer address
// of a neighbour discovery message whose option the message does not have.
func (p Packet) Input() string {
	var b strings.Builder
	protocol, _ := p.Protocol()
	ports, icmp := portPrefix(protocol), icmpPrefix(protocol)
	for _, field := range p.fields {
		name := field.Name
		switch {
		case name == "eth", strings.HasPrefix(name, "vlan_tci1"), lacksLinkLayer(field), name == "tun_flags":
			continue
		case name == "tp_src", name == "tp_dst":
			name = ports + strings.TrimPrefix(name, "tp")
		case name == "icmp_type", name == "icmp_code":
			name = icmp + strings.TrimPrefix(name, "icmp")
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		write(&b, name, field.Value)
	}
	return b.String()
}

// lacksLinkLayer reports whether a field is the zero address of an option that a neighbour
// discovery message does not have.
func lacksLinkLayer(field Field) bool {
	return (field.Name == "nd_sll" || field.Name == "nd_tll") && field.Value == "00:00:00:00:00:00"
}

// portPrefix returns what the names of port fields begin with in the input of ofproto/trace.
func portPrefix(protocol uint8) string {
	switch protocol {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return "tp"
}

// icmpPrefix returns what the names of ICMP fields begin with in the input of ofproto/trace.
func icmpPrefix(protocol uint8) string {
	if protocol == ICMPv6 {
		return "icmpv6"
	}
	return "icmp"
}

// Fields returns the packet's fields in their order.
func (p Packet) Fields() []Field { return slices.Clone(p.fields) }

// Clone returns a copy that can be changed independently.
func (p Packet) Clone() Packet { return Packet{slices.Clone(p.fields), p.below} }

// SameHeaders reports whether two packets have the same fields, in any order. A field
// that one packet lacks is equal to 0 and to "no".
func (p Packet) SameHeaders(other Packet) bool {
	return p.fields.includedIn(other.fields) && other.fields.includedIn(p.fields)
}
