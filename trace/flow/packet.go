// Package flow holds a packet as the ordered fields of the text that ofproto/trace
// prints ("Flow: ...") and takes. Field names are those of the printed text: tp_src for
// the source port of every protocol, dl_src and nw_src for addresses. Input returns the
// text with the names that ofproto/trace accepts.
package flow

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ovs-offline/internal/openflow"
)

// Field is a field of a packet. A word such as "tcp" has no value.
type Field struct{ Name, Value string }

// Packet is a packet with its metadata. The zero Packet has no fields. Methods that
// change a packet don't change copies made with Clone.
type Packet struct {
	fields []Field
	below  *Packet // what an MPLS header that was added hides; it never changes
}

// maxFields bounds a packet: a flow has fewer than 200 different fields.
const maxFields = 256

// Parse reads the text of a packet, without the heading "Flow: ".
func Parse(text string) (Packet, error) {
	var p Packet
	for rest := strings.TrimSpace(text); rest != ""; {
		end := openflow.IndexSeparator(rest, true)
		token := rest[:end]
		rest = strings.TrimLeft(rest[min(end+1, len(rest)):], " \t")
		if token == "" {
			continue
		}
		name, value, valued := strings.Cut(token, "=")
		if !isName(name) || valued && (value == "" || strings.ContainsFunc(value, isBlank)) {
			return Packet{}, fmt.Errorf("%q is no field of a packet in the notation of ofproto/trace", openflow.Shorten(token, 80))
		}
		if len(p.fields) == maxFields {
			return Packet{}, fmt.Errorf("a packet has more than %d fields", maxFields)
		}
		p.Set(PrintedName(name), value)
	}
	return p, nil
}

// isName reports whether a text can be the name of a field.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// isBlank reports whether a character is a space or one that can't be seen: no value has one.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// PrintedName returns the name by which ofproto/trace prints a field that has several
// names (ovs-fields(7)).
func PrintedName(name string) string {
	switch name {
	case "eth_src":
		return "dl_src"
	case "eth_dst":
		return "dl_dst"
	case "eth_type":
		return "dl_type"
	case "vlan_vid":
		return "dl_vlan"
	case "vlan_pcp":
		return "dl_vlan_pcp"
	case "ip_src":
		return "nw_src"
	case "ip_dst":
		return "nw_dst"
	case "ip_proto":
		return "nw_proto"
	case "ip_ttl":
		return "nw_ttl"
	case "ip_frag":
		return "nw_frag"
	case "ip_ecn":
		return "nw_ecn"
	case "tcp_src", "udp_src", "sctp_src":
		return "tp_src"
	case "tcp_dst", "udp_dst", "sctp_dst":
		return "tp_dst"
	case "icmpv6_type":
		return "icmp_type"
	case "icmpv6_code":
		return "icmp_code"
	case "tunnel_id":
		return "tun_id"
	}
	return name
}

// String returns the packet as ofproto/trace prints it.
func (p Packet) String() string {
	var b strings.Builder
	for i, f := range p.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		write(&b, f.Name, f.Value)
	}
	return b.String()
}

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
	tp, icmp := p.portPrefix(), p.icmpPrefix()
	for _, f := range p.fields {
		name := f.Name
		switch {
		case name == "eth", strings.HasPrefix(name, "vlan_tci1"), foreignLinkLayer(f), name == "tun_flags":
			continue
		case name == "tp_src", name == "tp_dst":
			name = tp + strings.TrimPrefix(name, "tp")
		case name == "icmp_type", name == "icmp_code":
			name = icmp + strings.TrimPrefix(name, "icmp")
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		write(&b, name, f.Value)
	}
	return b.String()
}

func foreignLinkLayer(f Field) bool {
	return (f.Name == "nd_sll" || f.Name == "nd_tll") && f.Value == "00:00:00:00:00:00"
}

func (p Packet) portPrefix() string {
	switch proto, _ := p.Protocol(); proto {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return "tp"
}

func (p Packet) icmpPrefix() string {
	if proto, _ := p.Protocol(); proto == ICMPv6 {
		return "icmpv6"
	}
	return "icmp"
}

// Fields returns the packet's fields in their order.
func (p Packet) Fields() []Field { return slices.Clone(p.fields) }

// Clone returns a copy that can be changed independently.
func (p Packet) Clone() Packet { return Packet{slices.Clone(p.fields), p.below} }

func (p Packet) index(name string) int {
	return slices.IndexFunc(p.fields, func(f Field) bool { return f.Name == name })
}

// Has reports whether the packet has a field or word.
func (p Packet) Has(name string) bool { return p.index(name) >= 0 }

// Get returns the value of a field, "" if the packet lacks it.
func (p Packet) Get(name string) string {
	if i := p.index(name); i >= 0 {
		return p.fields[i].Value
	}
	return ""
}

// Set gives a field a value, and appends the field if the packet lacks it.
func (p *Packet) Set(name, value string) {
	if i := p.index(name); i >= 0 {
		p.fields[i].Value = value
		return
	}
	p.fields = append(p.fields, Field{name, value})
}

// Prepend puts a field in front of the others, in place of an earlier value.
func (p *Packet) Prepend(name, value string) {
	p.Delete(name)
	p.fields = slices.Insert(p.fields, 0, Field{name, value})
}

// Delete removes fields.
func (p *Packet) Delete(names ...string) {
	p.DeleteFunc(func(name string) bool { return slices.Contains(names, name) })
}

// DeleteFunc removes the fields whose names a function accepts.
func (p *Packet) DeleteFunc(of func(name string) bool) {
	p.fields = slices.DeleteFunc(p.fields, func(f Field) bool { return of(f.Name) })
}

// Number returns the value of a field that is a number.
func (p Packet) Number(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(p.Get(name), 0, 64)
	return n, err == nil
}

// Address returns the value of a field that is an IP address.
func (p Packet) Address(name string) (a netip.Addr, ok bool) {
	a, err := netip.ParseAddr(p.Get(name))
	return a, err == nil
}

// SameHeaders reports whether two packets have the same fields, in any order. A field
// that one packet lacks is equal to 0 and to "no".
func (p Packet) SameHeaders(q Packet) bool { return p.covers(q) && q.covers(p) }

func (p Packet) covers(q Packet) bool {
	for _, f := range p.fields {
		i := q.index(f.Name)
		if i >= 0 && q.fields[i].Value == f.Value || f.Name == "in_port" || f.Name == "eth" {
			continue
		}
		if i >= 0 || !isZero(f) {
			return false
		}
	}
	return true
}

// isZero reports whether a field has the value that a packet without it has.
func isZero(f Field) bool {
	n, err := strconv.ParseUint(f.Value, 0, 64)
	return err == nil && n == 0 || f.Name == "nw_frag" && f.Value == "no"
}
