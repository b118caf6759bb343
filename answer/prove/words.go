package prove

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/internal/bdd"
)

// Criterion is what the packets of a set have in common in a field.
type Criterion struct {
	Field  string   `json:"field"`
	Values []string `json:"values"`         // single ones, prefixes, and ranges "FIRST-LAST"
	Not    bool     `json:"not,omitempty"`  // the field has any other value
	More   bool     `json:"more,omitempty"` // there are more values
}

// Packets is a set of packets that differ in nothing that decides.
type Packets struct {
	Criteria []Criterion `json:"criteria"` // fields that may have any value are left out
	// Certain reports that all of the packets get there. For others, that depends on a choice that the flows leave open.
	Certain bool `json:"certain"`
	// Witness is a packet of the set that the replicas answered about, as trace --flow takes it, and Arrived whether it got there; "" if they
	// answered about none.
	Witness string `json:"witness,omitempty"`
	Arrived bool   `json:"arrived"`

	set   bdd.Set
	share float64
	group bool // all are in frames to a group
}

// mostRanges bounds the values of a criterion.
const mostRanges = 8

// divide divides a set into sets of packets whose fields are independent of each other: the largest first, and those in frames to a group last.
// more is set if there are more than most.
func divide(m *symbolic.Machine, set bdd.Set, most int) (list []Packets, more bool) {
	const mostParts = 20_000
	space, fields := m.Space(), m.Fields()
	var walk func(rest, path bdd.Set, at int, criteria []Criterion)
	walk = func(rest, path bdd.Set, at int, criteria []Criterion) {
		if len(list) >= mostParts {
			more = true
			return
		}
		if at == len(fields) {
			list = append(list, Packets{Criteria: slices.Clone(criteria), set: path, share: space.Share(path), group: space.Without(path, toGroup(m)) == bdd.None})
			return
		}
		f := fields[at]
		for _, part := range space.Parts(rest, f.First+f.Bits) {
			next := criteria
			if part.Begin != bdd.All {
				next = append(slices.Clone(criteria), criterion(space, f, part.Begin))
			}
			walk(part.Rest, space.And(path, part.Begin), at+1, next)
		}
	}
	if set != bdd.None {
		walk(set, bdd.All, 0, nil)
	}
	slices.SortStableFunc(list, func(a, b Packets) int {
		if a.group != b.group {
			return map[bool]int{true: 1, false: -1}[a.group]
		}
		return cmp.Compare(b.share, a.share)
	})
	if len(list) > most {
		return list[:most], true
	}
	return list, more
}

// groupBit returns the bit of a MAC address that says that it is that of a group (IEEE 802).
func groupBit(f symbolic.Field) int { return f.First + 7 }

// toGroup returns the packets in frames to a group.
func toGroup(m *symbolic.Machine) bdd.Set {
	i := slices.IndexFunc(m.Fields(), func(f symbolic.Field) bool { return f.Name == "dl_dst" })
	return m.Space().Bit(groupBit(m.Fields()[i]))
}

// criterion describes the values of a field in a set that depends on it alone.
func criterion(space *bdd.Space, f symbolic.Field, set bdd.Set) Criterion {
	c := Criterion{Field: f.Name}
	if f.Bits == 48 {
		c.addHalf(space, f, set, "unicast", space.Not(space.Bit(groupBit(f))))
		c.addHalf(space, f, set, "multicast", space.Bit(groupBit(f)))
		return c
	}
	ranges, more := space.Ranges(set, f.First, f.Bits, mostRanges)
	others, many := space.Ranges(space.Not(set), f.First, f.Bits, mostRanges)
	if !many && (more || len(others) < len(ranges)) {
		ranges, c.Not, more = others, true, false
	}
	c.add(f, ranges)
	c.More = more
	return c
}

// addHalf adds the MAC addresses of a set that are in a half of all: as a word, where they are nearly all of it.
func (c *Criterion) addHalf(space *bdd.Space, f symbolic.Field, set bdd.Set, word string, half bdd.Set) {
	const mostBut = 4
	but, many := space.Ranges(space.Without(half, set), f.First, f.Bits, mostBut)
	ranges, more := space.Ranges(space.And(set, half), f.First, f.Bits, mostRanges)
	switch {
	case len(ranges) == 0:
	case len(but) == 0:
		c.Values = append(c.Values, word)
	case more && !many:
		without := Criterion{}
		without.add(f, but)
		c.Values = append(c.Values, word+" but "+strings.Join(without.Values, ", "))
	default:
		c.add(f, ranges)
		c.More = c.More || more
	}
}

func (c *Criterion) add(f symbolic.Field, ranges []bdd.Range) {
	for _, r := range ranges {
		if f.Name == "nw_proto" && r.Last.Low-r.First.Low < mostRanges {
			for n := r.First.Low; n <= r.Last.Low; n++ {
				c.Values = append(c.Values, numberText(f, bdd.Number{Low: n}))
			}
			continue
		}
		c.Values = append(c.Values, rangeText(f, r))
	}
}

func rangeText(f symbolic.Field, r bdd.Range) string {
	if r.First == r.Last {
		return numberText(f, r.First)
	}
	if prefix, ok := prefixText(f, r); ok {
		return prefix
	}
	return numberText(f, r.First) + "-" + numberText(f, r.Last)
}

// prefixText returns a range of IP addresses as a prefix, if it is one.
func prefixText(f symbolic.Field, r bdd.Range) (string, bool) {
	first, ok := addressOf(f, r.First)
	if !ok {
		return "", false
	}
	for bits := range f.Bits {
		prefix := netip.PrefixFrom(first, bits)
		if prefix.Masked().Addr() == first && lastOf(prefix) == mustAddress(f, r.Last) {
			return prefix.String(), true
		}
	}
	return "", false
}

func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

func mustAddress(f symbolic.Field, n bdd.Number) netip.Addr {
	address, _ := addressOf(f, n)
	return address
}

// addressOf returns a value of a field as an IP address; ok is false for other fields.
func addressOf(f symbolic.Field, n bdd.Number) (address netip.Addr, ok bool) {
	switch {
	case f.Bits == 128:
		return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n.High), n.Low))), true
	case f.Bits == 32 && (strings.HasPrefix(f.Name, "nw_") || strings.HasPrefix(f.Name, "arp_")):
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n.Low)))), true
	}
	return address, false
}

func numberText(f symbolic.Field, n bdd.Number) string {
	if address, ok := addressOf(f, n); ok {
		return address.String()
	}
	if f.Bits == 48 {
		return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, n.Low)[2:]).String()
	}
	if f.Name == "nw_proto" {
		if word := protocolWord(n.Low); word != "" {
			return word
		}
	}
	return fmt.Sprint(n.Low)
}

// protocolWord returns the name of an IP protocol, "" for one that flows have no word for.
func protocolWord(number uint64) string {
	return map[uint64]string{1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}[number]
}

// text returns what the packets of a sender have in common, in words. known returns what is said of an address besides it.
func (p *Packets) text(own []string, known func(address string) string) string {
	protocol, words := "", []string(nil)
	for _, c := range p.Criteria {
		if c.Field == "nw_proto" {
			protocol = c.values(nil)
			words = append(words, protocol)
			continue
		}
		if text := c.text(protocol, own, known); text != "" {
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return "every packet"
	}
	return strings.Join(words, ", ")
}

// text returns a criterion in words, "" for what packets of a protocol have anyway, and for the sender's own address.
func (c Criterion) text(protocol string, own []string, known func(address string) string) string {
	ports := slices.Contains([]string{"", "tcp", "udp", "sctp", "tcp, udp", "tcp, udp, sctp", "udp, sctp", "tcp, sctp"}, protocol)
	none := len(c.Values) == 1 && !c.Not && slices.Contains([]string{"0", "::", "00:00:00:00:00:00"}, c.Values[0])
	isOwn := !c.Not && !c.More && !slices.ContainsFunc(c.Values, func(value string) bool { return !slices.Contains(own, value) })
	switch c.Field {
	case "tcp_flags", "nw_frag":
		return ""
	case "vlan_tci":
		if none {
			return ""
		}
	case "nd_target", "nd_sll", "nd_tll", "tun_id", "tun_metadata0":
		if none {
			return ""
		}
	case "tp_src", "tp_dst":
		if !ports {
			return ""
		}
	case "dl_src", "nw_src", "ipv6_src", "arp_spa", "arp_sha":
		if isOwn {
			return ""
		}
	}
	name := map[string]string{"dl_dst": "to MAC", "dl_src": "from MAC", "nw_src": "from", "nw_dst": "to", "ipv6_src": "from", "ipv6_dst": "to", "tp_src": "source port",
		"tp_dst": "port", "nw_ttl": "TTL", "vlan_tci": "VLAN TCI", "arp_spa": "sender", "arp_tpa": "target", "arp_sha": "sender MAC", "arp_tha": "target MAC", "nw_tos": "TOS", "tun_id": "tunnel key"}[c.Field]
	return cmp.Or(name, c.Field) + " " + c.values(known)
}

func (c Criterion) values(known func(address string) string) string {
	var list []string
	for _, value := range c.Values {
		if known != nil {
			if word := known(value); word != "" {
				value += " (" + word + ")"
			}
		}
		list = append(list, value)
	}
	text := strings.Join(list, ", ")
	if c.More {
		text += " and others"
	}
	if c.Not {
		text = "all but " + text
	}
	return text
}
