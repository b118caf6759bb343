package megaflow

import (
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow/flow"
)

// isMasked reports whether packets of one megaflow may differ in a field. They are equal in all
// fields that decide how the others are read, such as VLAN tags and protocols, and in all fields
// that rarely differ.
func isMasked(name string) bool {
	switch name {
	case "dl_src", "dl_dst", "arp_sha", "arp_tha", "nd_sll", "nd_tll",
		"nw_src", "nw_dst", "ipv6_src", "ipv6_dst", "arp_spa", "arp_tpa", "nd_target", "ct_nw_src", "ct_nw_dst", "ct_ipv6_src", "ct_ipv6_dst",
		"tp_src", "tp_dst", "ct_tp_src", "ct_tp_dst", "nw_ttl", "nw_tos", "nw_ecn", "icmp_type", "icmp_code", "ct_mark", "ct_label", "ct_nw_proto",
		ctState:
		return true
	}
	return false
}

// ctState is a field whose masks are lists of flags.
const ctState = "ct_state"

// field is a field of a megaflow that packets differ in, with its mask; "" selects all
// bits.
type field struct{ name, mask string }

// parseMasks returns the fields of a megaflow that packets differ in; ok is false if one is in
// a notation that this package doesn't know.
func parseMasks(text string) (fields []field, ok bool) {
	megaflow, err := flow.Parse(text)
	if err != nil || len(megaflow.Fields()) == 0 {
		return nil, false
	}
	for _, printed := range megaflow.Fields() {
		if !isMasked(printed.Name) {
			continue
		}
		_, mask, _ := strings.Cut(printed.Value, "/")
		if printed.Name == ctState {
			mask = strings.Join(flagNames(printed.Value), "|")
		}
		fields = append(fields, field{printed.Name, mask})
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
func (m *masked) key(packet flow.Packet) (key string, ok bool) {
	var b strings.Builder
	for _, field := range m.fields {
		value, ok := field.selectBits(packet.Get(field.name))
		if !ok {
			return "", false
		}
		b.WriteString(value)
		b.WriteByte(0)
	}
	return b.String(), true
}

// selectBits returns the bits of a value that the field's mask selects.
func (f field) selectBits(value string) (string, bool) {
	if f.name == ctState {
		set := strings.FieldsFunc(value, func(c rune) bool { return c == '|' || c == ',' })
		selected := slices.DeleteFunc(strings.Split(f.mask, "|"), func(name string) bool { return !slices.Contains(set, name) })
		return strings.Join(selected, "|"), true
	}
	if f.mask == "" || value == "" {
		return value, true
	}
	var selected flow.Packet
	selected.Set(f.name, zero(value))
	if err := selected.SetMasked(f.name, value+"/"+f.mask); err != nil {
		return "", false
	}
	return selected.Get(f.name), true
}

// zero returns the value without any bit set, in the notation of another one.
func zero(like string) string {
	if ip, err := netip.ParseAddr(like); err == nil && ip.Is6() {
		return "::"
	} else if err == nil {
		return "0.0.0.0"
	}
	if strings.Count(like, ":") == 5 {
		return "00:00:00:00:00:00"
	}
	return "0"
}
