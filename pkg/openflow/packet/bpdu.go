package packet

import "encoding/binary"

// TreePriority is the priority vector that a bridge sends in a BPDU
// (IEEE 802.1D-2004, 9.3). Root and Bridge are bridge identifiers: a priority in
// the upper 16 bits, and a MAC address.
type TreePriority struct {
	Root   uint64
	Cost   uint32
	Bridge uint64
	Port   uint16
}

// TreeTimes are the timers of a spanning tree in seconds. All bridges use the root's.
type TreeTimes struct{ MaxAge, Hello, ForwardDelay uint16 }

// DefaultTreeTimes returns the timers that IEEE 802.1D-2004, 17.14, recommends.
func DefaultTreeTimes() TreeTimes { return TreeTimes{MaxAge: 20, Hello: 2, ForwardDelay: 15} }

// STP returns a Configuration BPDU (IEEE 802.1D-2004, 9.3.1).
func STP(priority TreePriority, times TreeTimes) []byte {
	return bpdu(priority, times, 0, 0, 0)
}

// RSTP returns an RST BPDU of a designated port that learns, forwards and agrees
// (IEEE 802.1D-2004, 9.3.3).
func RSTP(priority TreePriority, times TreeTimes) []byte {
	const agreement, forwarding, learning, designated = 0x40, 0x20, 0x10, 0x0c
	return bpdu(priority, times, 2, 2, agreement|forwarding|learning|designated)
}

// bpdu returns a frame of minFrame bytes; all bytes behind the BPDU are zero.
func bpdu(priority TreePriority, times TreeTimes, version, kind, flags byte) []byte {
	const unit = 256 // timers count 1/256 s
	body := []byte{0x42, 0x42, 0x03, 0, 0, version, kind, flags}
	body, _ = binary.Append(body, binary.BigEndian, priority) // its fields are in the order of the wire format
	body, _ = binary.Append(body, binary.BigEndian, []uint16{0, times.MaxAge * unit, times.Hello * unit, times.ForwardDelay * unit})
	if version > 0 {
		body = append(body, 0) // the length of the fields of a version 1 BPDU, which has none
	}
	frame := ethernet(MAC{0x01, 0x80, 0xc2}, MAC{0x02, 5: 0x01}, 0, uint16(len(body)))
	frame = append(frame, body...)
	return append(frame, make([]byte, minFrame-len(frame))...)
}
