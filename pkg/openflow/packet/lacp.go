package packet

import "encoding/binary"

// LACPInfo describes one end of a link as LACP does (IEEE 802.1AX-2008, 5.4.2.2).
type LACPInfo struct {
	SystemPriority uint16
	System         MAC
	Key            uint16
	PortPriority   uint16
	Port           uint16
	State          byte // bit n is set for the n-th word of LACPStates
}

// LACPStates lists the bits of the state, the lowest first, with the names that
// ovs-appctl lacp/show prints.
func LACPStates() []string {
	return []string{"activity", "timeout", "aggregation", "synchronized", "collecting", "distributing", "defaulted", "expired"}
}

// LACPDU returns the frame in which actor describes itself (IEEE 802.1AX-2008,
// 5.4.2.1). Its partner information is zero, because ovs-vswitchd answers a partner
// that does not know it, and evaluates the port again only when it sends an answer.
func LACPDU(actor LACPInfo) []byte {
	const length = 124         // with the Ethernet header
	const lacp, version = 1, 1 // subtype of the slow protocols
	const actorTLV, partner, collector = 1, 2, 3
	frame := ethernet(MAC{0x01, 0x80, 0xc2, 0, 0, 0x02}, actor.System, 0, typeSlowProtocols)
	frame = append(frame, lacp, version)
	frame = actor.appendTo(frame, actorTLV)
	frame = LACPInfo{}.appendTo(frame, partner)
	frame = append(frame, collector, 16)
	return append(frame, make([]byte, length-len(frame))...)
}

// appendTo appends the fields of i, which are in the order of the wire format.
func (i LACPInfo) appendTo(frame []byte, kind byte) []byte {
	const length = 20
	frame, _ = binary.Append(append(frame, kind, length), binary.BigEndian, i)
	return append(frame, 0, 0, 0)
}
