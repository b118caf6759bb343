// Package symbolic executes OpenFlow tables on sets of packets: it follows all packets that enter a bridge at once, as functions of the bits
// of their headers, and returns for each port the set of those that may come out. It reads texts of flows and groups, and knows neither files
// nor daemons.
package symbolic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/bdd"
	"ovs-offline/pkg/openflow"
)

// Family is what kind of packets a set holds.
type Family uint16

// The families, by their types of Ethernet frames.
const (
	IPv4 Family = 0x800
	IPv6 Family = 0x86dd
	ARP  Family = 0x806
)

func (f Family) String() string {
	return map[Family]string{IPv4: "IPv4", IPv6: "IPv6", ARP: "ARP"}[f]
}

// Field is a field of the packets of a family, whose bits a set may depend on.
type Field struct {
	Name  string // in a match
	Bits  int
	First int // its highest bit among those of all fields
}

// span is a run of bits of the state, the highest first.
type span struct{ at, width int }

// part returns some bits of a field, numbered from the lowest one.
func (s span) part(low, width int) span { return span{s.at + s.width - low - width, width} }

// registers is the number of 32-bit registers that Open vSwitch has since 3.7; before, it had 16.
const registers = 32

// layout numbers the bits of all fields of packets and of their metadata. Fields that share bits are parts of one.
type layout struct {
	family Family
	inputs []Field
	spans  map[string]span
	size   int
}

// headers are the fields of a family in the order of the diagrams: what decides about other fields comes before them.
func headers(family Family) []Field {
	network := func(address int, src, dst string) []Field {
		return []Field{{Name: "nw_proto", Bits: 8}, {Name: "nw_frag", Bits: 2}, {Name: "vlan_tci", Bits: 16}, {Name: "dl_dst", Bits: 48}, {Name: "dl_src", Bits: 48},
			{Name: src, Bits: address}, {Name: dst, Bits: address}, {Name: "tp_src", Bits: 16}, {Name: "tp_dst", Bits: 16}}
	}
	last := []Field{{Name: "tcp_flags", Bits: 12}, {Name: "nw_ttl", Bits: 8}, {Name: "nw_tos", Bits: 8}}
	switch family {
	case IPv4:
		return append(network(32, "nw_src", "nw_dst"), last...)
	case IPv6:
		discovery := []Field{{Name: "nd_target", Bits: 128}, {Name: "nd_sll", Bits: 48}, {Name: "nd_tll", Bits: 48}}
		return append(append(network(128, "ipv6_src", "ipv6_dst"), discovery...), append(last, Field{Name: "ipv6_label", Bits: 20})...)
	}
	return []Field{{Name: "arp_op", Bits: 16}, {Name: "vlan_tci", Bits: 16}, {Name: "dl_dst", Bits: 48}, {Name: "dl_src", Bits: 48},
		{Name: "arp_spa", Bits: 32}, {Name: "arp_tpa", Bits: 32}, {Name: "arp_sha", Bits: 48}, {Name: "arp_tha", Bits: 48}}
}

func newLayout(family Family, carried []Field) *layout {
	l := &layout{family: family, spans: map[string]span{}}
	for _, f := range slices.Concat(carried, headers(family)) {
		f.First = l.size
		l.inputs = append(l.inputs, f)
		l.add(f.Name, f.Bits)
	}
	at := l.add("registers", 32*registers).at
	for i := range registers {
		l.spans["reg"+strconv.Itoa(i)] = span{at + 32*i, 32}
	}
	for i := range registers / 2 {
		l.spans["xreg"+strconv.Itoa(i)] = span{at + 64*i, 64}
	}
	for i := range registers / 4 {
		l.spans["xxreg"+strconv.Itoa(i)] = span{at + 128*i, 128}
	}
	for _, name := range []string{"nw_tos", "tp_src", "tp_dst", "vlan_tci"} {
		if _, ok := l.spans[name]; !ok {
			l.add(name, 16)
		}
	}
	l.spans["ip_dscp"], l.spans["nw_ecn"] = l.spans["nw_tos"].part(2, 6), l.spans["nw_tos"].part(0, 2)
	l.spans["icmp_type"], l.spans["icmp_code"] = l.spans["tp_src"].part(0, 8), l.spans["tp_dst"].part(0, 8)
	l.spans["vlan_vid"], l.spans["dl_vlan"], l.spans["dl_vlan_pcp"] = l.spans["vlan_tci"].part(0, 13), l.spans["vlan_tci"].part(0, 12), l.spans["vlan_tci"].part(13, 3)
	return l
}

func (l *layout) add(name string, bits int) span {
	l.spans[name] = span{l.size, bits}
	l.size += bits
	return l.spans[name]
}

// span returns the bits of a field by its name in a match.
func (l *layout) span(name string) (span, error) {
	if s, ok := l.spans[name]; ok {
		return s, nil
	}
	v, _ := openflow.ValueOf(name, "0")
	if _, known := openflow.FieldName(name); !known && !strings.HasPrefix(name, "tun_metadata") {
		return span{}, fmt.Errorf("the field %s is not modelled", name)
	}
	return l.add(v.Field, v.Bits), nil
}

// tagged is the bit of vlan_tci that says that there is a tag.
const tagged = 12

// literal is a bit of the state with the value that it has to have, or gets.
type literal struct {
	at    int
	value bool
}

// literals returns the bits of a field that a text selects, in their order.
func (l *layout) literals(name, text string) (list []literal, err error) {
	v, ok := openflow.ValueOf(name, text)
	if !ok {
		return nil, fmt.Errorf("%s=%s can't be read", name, text)
	}
	s, err := l.span(v.Field)
	if err != nil {
		return nil, err
	}
	for i := range v.Bits {
		bit := v.Bits - 1 - i
		switch {
		case !v.Selected.Bit(bit):
		case bit < s.width:
			list = append(list, literal{s.at + s.width - 1 - bit, v.Set.Bit(bit)})
		case v.Set.Bit(bit) && v.Bits > s.width:
			return nil, fmt.Errorf("%s=%s has more bits than the model of the field", name, text)
		}
	}
	return list, nil
}

// criterion returns the bits that a criterion of a match selects, in their order.
func (l *layout) criterion(name, text string) ([]literal, error) {
	if name != "dl_vlan" {
		return l.literals(name, text)
	}
	tag := l.spans["vlan_tci"].part(tagged, 1).at
	if text == "0xffff" || text == "65535" { // OpenFlow 1.0: no tag
		return []literal{{tag, false}}, nil
	}
	list, err := l.literals(name, text)
	return append([]literal{{tag, true}}, list...), err
}

// valid returns the strings that are headers of packets: fields that a packet does not have are 0, as Open vSwitch matches them.
func (l *layout) valid(space *bdd.Space) bdd.Set {
	valid := bdd.All
	imply := func(condition, then bdd.Set) { valid = space.And(valid, space.Or(space.Not(condition), then)) }
	is := func(field string, number int) bdd.Set { return l.equals(space, field, uint64(number)) }
	tag := space.Bit(l.spans["vlan_tci"].part(tagged, 1).at)
	imply(space.Not(tag), is("vlan_tci", 0))
	if l.family == ARP { // arp_op has 8 bits in Open vSwitch (ovs-fields(7))
		return space.Without(valid, l.atLeast(space, "arp_op", 256))
	}
	const icmp, igmp, tcp, udp, icmp6, sctp = 1, 2, 6, 17, 58, 132
	later, fragment := is("nw_frag", 3), space.Not(is("nw_frag", 0))
	imply(bdd.All, space.Not(is("nw_frag", 2)))
	noPorts := space.And(is("tp_src", 0), is("tp_dst", 0))
	typed := is("nw_proto", icmp6)
	if l.family == IPv4 {
		typed = space.Or(is("nw_proto", icmp), is("nw_proto", igmp))
	}
	ported := space.Or(space.Or(is("nw_proto", tcp), is("nw_proto", udp)), is("nw_proto", sctp))
	imply(space.Or(fragment, space.Not(space.Or(typed, ported))), noPorts) // ovs-ofctl(8), set-frags: normal
	imply(typed, space.Not(space.Or(l.atLeast(space, "tp_src", 256), l.atLeast(space, "tp_dst", 256))))
	imply(space.Or(later, space.Not(is("nw_proto", tcp))), is("tcp_flags", 0))
	if l.family == IPv6 {
		solicits := space.And(typed, space.And(is("tp_src", 135), is("tp_dst", 0)))
		advertises := space.And(typed, space.And(is("tp_src", 136), is("tp_dst", 0)))
		imply(space.Not(space.Or(solicits, advertises)), is("nd_target", 0))
		imply(space.Not(solicits), is("nd_sll", 0))
		imply(space.Not(advertises), is("nd_tll", 0))
	}
	return valid
}

// equals returns the headers in which a field has a value.
func (l *layout) equals(space *bdd.Space, field string, value uint64) bdd.Set {
	s := l.spans[field]
	var list []bdd.Literal
	for i := range s.width {
		bit := s.width - 1 - i
		list = append(list, bdd.Literal{Bit: s.at + i, Value: bit < 64 && value>>bit&1 == 1})
	}
	return space.Cube(list)
}

// atLeast returns the headers in which a field has a power of two at least.
func (l *layout) atLeast(space *bdd.Space, field string, power uint64) bdd.Set {
	s, found := l.spans[field], bdd.None
	for i := range s.width {
		if uint64(1)<<(s.width-1-i) >= power {
			found = space.Or(found, space.Bit(s.at+i))
		}
	}
	return found
}
