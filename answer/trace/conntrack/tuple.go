// Package conntrack looks connections up in the recorded tables of a node, and does what
// a ct action of the datapath does to a packet: it finds the connection's state,
// translates addresses, and commits. Commits are kept as Changes and not in the recorded
// tables, so they hold only for the later packets of one question.
//
// The rules are the rules of Linux's nf_conntrack with openvswitch.ko, or of the userspace
// datapath (lib/conntrack.c of Open vSwitch) where these differ.
package conntrack

import (
	"fmt"
	"net/netip"
	"strconv"

	"ovs-offline/pkg/openflow/flow"
)

// Tuple identifies one direction of a connection.
type Tuple struct {
	Proto            uint8
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16 // of ICMP: type and code
	ID               uint16 // of an ICMP query, 0 if not known
}

// String returns the tuple as dpctl/dump-conntrack prints it.
func (t Tuple) String() string {
	if t.isICMP() {
		return fmt.Sprintf("src=%v,dst=%v,id=%d,type=%d,code=%d", t.Src, t.Dst, t.ID, t.SrcPort, t.DstPort)
	}
	return fmt.Sprintf("src=%v,dst=%v,sport=%d,dport=%d", t.Src, t.Dst, t.SrcPort, t.DstPort)
}

// isICMP reports whether the ports are a type and a code.
func (t Tuple) isICMP() bool { return t.Proto == flow.ICMP || t.Proto == flow.ICMPv6 }

// reverse returns the tuple of the opposite direction.
func (t Tuple) reverse() Tuple {
	t.Src, t.Dst = t.Dst, t.Src
	if !t.isICMP() {
		t.SrcPort, t.DstPort = t.DstPort, t.SrcPort
		return t
	}
	t.SrcPort = reverseType(t.Proto, t.SrcPort)
	return t
}

// reverseType returns the type of the answer to an ICMP query, or of the query.
func reverseType(proto uint8, kind uint16) uint16 {
	pairs := [][2]uint16{{8, 0}, {13, 14}, {15, 16}, {17, 18}}
	if proto == flow.ICMPv6 {
		pairs = [][2]uint16{{128, 129}}
	}
	for _, pair := range pairs {
		switch kind {
		case pair[0]:
			return pair[1]
		case pair[1]:
			return pair[0]
		}
	}
	return kind
}

// isQuery reports whether an ICMP message may begin a connection.
func (t Tuple) isQuery() bool {
	if t.Proto == flow.ICMPv6 {
		return t.SrcPort == 128
	}
	return t.SrcPort == 8 || t.SrcPort == 13 || t.SrcPort == 15 || t.SrcPort == 17
}

// IsError reports whether an ICMP message quotes the packet that caused it.
func (t Tuple) IsError() bool {
	switch t.Proto {
	case flow.ICMP:
		return t.SrcPort == 3 || t.SrcPort == 4 || t.SrcPort == 5 || t.SrcPort == 11 || t.SrcPort == 12
	case flow.ICMPv6:
		return t.SrcPort >= 1 && t.SrcPort <= 4
	}
	return false
}

// TupleOf returns the tuple of a packet; ok is false if conntrack can't track it. id is
// the identifier of an ICMP query, 0 if it is not known.
func TupleOf(packet flow.Packet, id uint16) (tuple Tuple, ok bool) {
	if tuple.Src, tuple.Dst, ok = packet.Addresses(); !ok {
		return Tuple{}, false
	}
	if tuple.Proto, ok = packet.Protocol(); !ok {
		return Tuple{}, false
	}
	src, dst := "tp_src", "tp_dst"
	if tuple.isICMP() {
		src, dst, tuple.ID = "icmp_type", "icmp_code", id
	}
	from, _ := packet.Number(src)
	to, _ := packet.Number(dst)
	tuple.SrcPort, tuple.DstPort = uint16(from), uint16(to)
	return tuple, true
}

// AnswerTo returns the ICMP type of the answer to a query; ok is false for a message
// that is not a query.
func AnswerTo(tuple Tuple) (kind string, ok bool) {
	return strconv.Itoa(int(reverseType(tuple.Proto, tuple.SrcPort))), tuple.isQuery()
}
