//go:build linux

package keeper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// connection is a connection as conntrack knows it.
type connection struct {
	text        string // as recorded
	protocol    uint16 // above IP
	state       uint8  // of TCP
	orig, reply tuple
	zone        uint16
	mark        uint32
	seenReply   bool
	assured     bool
	nat         bool // the kernel translates addresses
	rejected    bool
}

// tuple is one direction of a connection. Of ICMP, both ports are the ID.
type tuple struct {
	source, destination netip.Addr
	sport, dport        uint16
	icmpType, icmpCode  uint8
}

// key identifies a connection.
func (c connection) key() string { return fmt.Sprint(c.protocol, " ", c.zone, " ", c.orig) }

func (c connection) family() uint8 {
	if c.orig.source.Is4() {
		return unix.NFPROTO_IPV4
	}
	return unix.NFPROTO_IPV6
}

func (c connection) status() conntrack.Status {
	status := conntrack.StatusConfirmed
	if c.seenReply {
		status |= conntrack.StatusSeenReply
	}
	if c.assured {
		status |= conntrack.StatusAssured
	}
	return status
}

func isICMP(protocol uint16) bool {
	return protocol == unix.IPPROTO_ICMP || protocol == unix.IPPROTO_ICMPV6
}

// inverse returns the tuple of the replies, if no address is translated.
func (t tuple) inverse(protocol uint16) tuple {
	back := tuple{source: t.destination, destination: t.source, sport: t.dport, dport: t.sport, icmpType: t.icmpType, icmpCode: t.icmpCode}
	if isICMP(protocol) {
		for _, pair := range [][2]uint8{{8, 0}, {13, 14}, {15, 16}, {17, 18}, {128, 129}, {139, 140}} {
			if i := slices.Index(pair[:], t.icmpType); i >= 0 {
				back.icmpType = pair[1-i]
			}
		}
	}
	return back
}

// text returns the tuple as conntrack -L prints it.
func (t tuple) text(protocol uint16) string {
	text := fmt.Sprintf("src=%s dst=%s", t.source, t.destination)
	switch {
	case isICMP(protocol):
		text += fmt.Sprintf(" type=%d code=%d id=%d", t.icmpType, t.icmpCode, t.sport)
	case hasPorts(protocol):
		text += fmt.Sprintf(" sport=%d dport=%d", t.sport, t.dport)
	}
	return text
}

// attribute returns the tuple for a message.
func (t tuple) attribute(kind, protocol uint16) netfilter.Attribute {
	const source4, destination4, source6, destination6 = 1, 2, 3, 4
	const number, sport, dport, id, icmpType, icmpCode, id6, icmpType6, icmpCode6 = 1, 2, 3, 4, 5, 6, 7, 8, 9
	from, to := uint16(source4), uint16(destination4)
	if t.source.Is6() {
		from, to = source6, destination6
	}
	above := []netfilter.Attribute{{Type: number, Data: []byte{uint8(protocol)}}}
	switch {
	case protocol == unix.IPPROTO_ICMP:
		above = append(above, netfilter.Attribute{Type: id, Data: netfilter.Uint16Bytes(t.sport)}, netfilter.Attribute{Type: icmpType, Data: []byte{t.icmpType}}, netfilter.Attribute{Type: icmpCode, Data: []byte{t.icmpCode}})
	case protocol == unix.IPPROTO_ICMPV6:
		above = append(above, netfilter.Attribute{Type: id6, Data: netfilter.Uint16Bytes(t.sport)}, netfilter.Attribute{Type: icmpType6, Data: []byte{t.icmpType}}, netfilter.Attribute{Type: icmpCode6, Data: []byte{t.icmpCode}})
	case hasPorts(protocol):
		above = append(above, netfilter.Attribute{Type: sport, Data: netfilter.Uint16Bytes(t.sport)}, netfilter.Attribute{Type: dport, Data: netfilter.Uint16Bytes(t.dport)})
	}
	return netfilter.Attribute{Type: kind, Nested: true, Children: []netfilter.Attribute{
		{Type: ctaTupleIP, Nested: true, Children: []netfilter.Attribute{{Type: from, Data: t.source.AsSlice()}, {Type: to, Data: t.destination.AsSlice()}}},
		{Type: ctaTupleProto, Nested: true, Children: above},
	}}
}

// tcpStates are the states of TCP by the kernel's numbers.
func tcpStates() []string {
	return []string{"NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2"}
}

// protocols are the names of protocols as conntrack prints them, by their numbers.
func protocols() map[uint16]string {
	return map[uint16]string{1: "icmp", 6: "tcp", 17: "udp", 33: "dccp", 47: "gre", 58: "icmpv6", 132: "sctp", 136: "udplite"}
}

func protocolName(number uint16) string {
	if name := protocols()[number]; name != "" {
		return name
	}
	return fmt.Sprint("proto ", number)
}

// numberOf is the reverse of protocolName for protocols with a name.
func numberOf(name string) (number uint16, ok bool) {
	for number, known := range protocols() {
		if known == name {
			return number, true
		}
	}
	return 0, false
}

// parseConnection reads a line of conntrack -L, also with -o extended, or of /proc/net/nf_conntrack.
func parseConnection(text string) (c connection, err error) {
	c = connection{text: text, seenReply: true}
	words := strings.Fields(text)
	if len(words) > 2 && (words[0] == "ipv4" || words[0] == "ipv6") {
		words = words[2:]
	}
	if len(words) < 4 {
		return c, errors.New("it is not a line of conntrack")
	}
	n, err := strconv.ParseUint(words[1], 10, 8)
	if c.protocol = uint16(n); err != nil {
		known, ok := numberOf(words[0])
		if !ok {
			return c, errors.New("it has no number of a protocol")
		}
		c.protocol = known
	}
	side := &c.orig
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			c.readFlag(word)
			continue
		}
		if name == "src" && side.source.IsValid() {
			side = &c.reply
		}
		if err := c.readValue(side, name, value); err != nil {
			return c, fmt.Errorf("%s: %w", word, err)
		}
	}
	if isICMP(c.protocol) && c.orig.source.IsValid() && c.reply.icmpType == c.orig.icmpType {
		c.reply.icmpType = c.orig.inverse(c.protocol).icmpType
	}
	for _, addr := range []netip.Addr{c.orig.source, c.orig.destination, c.reply.source, c.reply.destination} {
		if !addr.IsValid() || addr.Is4() != c.orig.source.Is4() || addr.Is4In6() || addr.Zone() != "" {
			return c, errors.New("it has not two addresses in each direction")
		}
	}
	return c, nil
}

// readFlag reads a word without a value.
func (c *connection) readFlag(word string) {
	switch {
	case word == "[UNREPLIED]":
		c.seenReply = false
	case word == "[ASSURED]":
		c.assured = true
	case c.protocol == unix.IPPROTO_TCP:
		if i := slices.Index(tcpStates(), word); i >= 0 {
			c.state = uint8(i)
		}
		if word == "[OFFLOAD]" || word == "[HW_OFFLOAD]" {
			c.state = 3 // what a flow table forwards is established
			c.assured = true
		}
	}
}

// readValue reads a word with a value.
func (c *connection) readValue(side *tuple, name, value string) (err error) {
	n := func(bits int) uint64 {
		parsed, problem := strconv.ParseUint(value, 0, bits)
		err = problem
		return parsed
	}
	switch name {
	case "src":
		side.source, err = netip.ParseAddr(value)
	case "dst":
		side.destination, err = netip.ParseAddr(value)
	case "sport":
		side.sport = uint16(n(16))
	case "dport":
		side.dport = uint16(n(16))
	case "type":
		side.icmpType = uint8(n(8))
	case "code":
		side.icmpCode = uint8(n(8))
	case "id":
		side.sport = uint16(n(16))
		side.dport = side.sport
	case "mark":
		c.mark = uint32(n(32))
	case "zone":
		c.zone = uint16(n(16))
	case "zone-orig", "orig-zone", "zone-reply", "reply-zone":
		return errors.New("zones of one direction are not restored")
	}
	return err
}

// connectionOf returns a connection of the library.
func connectionOf(flow *conntrack.Flow) connection {
	c := connection{protocol: uint16(flow.TupleOrig.Proto.Protocol), zone: flow.Zone, mark: flow.Mark, seenReply: flow.Status.SeenReply(), assured: flow.Status.Assured(),
		orig: tupleOf(flow.TupleOrig), reply: tupleOf(flow.TupleReply)}
	if flow.ProtoInfo.TCP != nil {
		c.state = flow.ProtoInfo.TCP.State
	}
	return c
}

func tupleOf(t conntrack.Tuple) tuple {
	of := tuple{source: t.IP.SourceAddress, destination: t.IP.DestinationAddress, sport: t.Proto.SourcePort, dport: t.Proto.DestinationPort, icmpType: t.Proto.ICMPType, icmpCode: t.Proto.ICMPCode}
	if t.Proto.ICMPv4 || t.Proto.ICMPv6 {
		of.sport, of.dport = t.Proto.ICMPID, t.Proto.ICMPID
	}
	return of
}
