package megaflow

import (
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/trace/flow"
)

// kind is how a field is compared.
type kind int

const (
	exact   kind = iota // packets have to be equal in it, whatever the megaflow shows
	number              // a number, also of many digits
	mac                 // an Ethernet address
	address             // an IP address
	state               // ct_state
)

// kindOf returns the kind of a field. Exact are all fields that decide how the others are
// read, such as VLAN tags and protocols, and those of which packets differ rarely.
func kindOf(name string) kind {
	switch name {
	case "dl_src", "dl_dst", "arp_sha", "arp_tha", "nd_sll", "nd_tll":
		return mac
	case "nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "arp_spa", "arp_tpa", "nd_target", "ct_nw_src", "ct_nw_dst", "ct_ipv6_src", "ct_ipv6_dst":
		return address
	case "tp_src", "tp_dst", "ct_tp_src", "ct_tp_dst", "nw_ttl", "nw_tos", "nw_ecn", "icmp_type", "icmp_code", "ct_mark", "ct_label", "ct_nw_proto":
		return number
	case "ct_state":
		return state
	}
	return exact
}

// field is a field of a megaflow that packets differ in, with its mask; "" selects all
// bits.
type field struct {
	name, mask string
	kind       kind
}

// parse returns the fields of a megaflow that packets differ in; ok is false if one is in
// a notation that this package doesn't know.
func parse(text string) (fields []field, ok bool) {
	p, err := flow.Parse(text)
	if err != nil || len(p.Fields()) == 0 {
		return nil, false
	}
	for _, f := range p.Fields() {
		one := field{name: f.Name, kind: kindOf(f.Name)}
		switch one.kind {
		case exact:
			continue
		case state:
			one.mask = strings.Join(flagNames(f.Value), "|")
		default:
			_, one.mask, _ = strings.Cut(f.Value, "/")
		}
		fields = append(fields, one)
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields, true
}

// flagNames returns the names in a masked set of flags, "+new-est", in order.
func flagNames(text string) []string {
	names := strings.FieldsFunc(text, func(c rune) bool { return c == '+' || c == '-' })
	slices.Sort(names)
	return names
}

func (m *masked) equal(other *masked) bool { return slices.Equal(m.fields, other.fields) }

// key returns the bits of a packet that the masks select; ok is false if the packet has a
// value that can't be masked.
func (m *masked) key(p flow.Packet) (key string, ok bool) {
	var b strings.Builder
	for _, f := range m.fields {
		value, ok := f.of(p.Get(f.name))
		if !ok {
			return "", false
		}
		b.WriteString(value)
		b.WriteByte(0)
	}
	return b.String(), true
}

// of returns the bits of a value that the field's mask selects.
func (f field) of(value string) (string, bool) {
	if f.kind == state {
		set := strings.FieldsFunc(value, func(c rune) bool { return c == '|' || c == ',' })
		selected := slices.DeleteFunc(strings.Split(f.mask, "|"), func(name string) bool { return !slices.Contains(set, name) })
		return strings.Join(selected, "|"), true
	}
	if f.mask == "" || value == "" {
		return value, true
	}
	var selected flow.Packet
	selected.Set(f.name, f.zero(value))
	if err := selected.SetMasked(f.name, value+"/"+f.mask); err != nil {
		return "", false
	}
	return selected.Get(f.name), true
}

// zero returns the value without any bit set, in the notation of a value.
func (f field) zero(like string) string {
	switch f.kind {
	case mac:
		return "00:00:00:00:00:00"
	case address:
		if ip, err := netip.ParseAddr(like); err == nil && ip.Is6() {
			return "::"
		}
		return "0.0.0.0"
	}
	return "0"
}
