// Package packet builds the control packets that a bridge receives during a restore:
// LACPDUs, spanning tree BPDUs, and IGMP and MLD messages. Each function returns a
// whole Ethernet frame without its checksum.
package packet

import "encoding/binary"

// MAC is an Ethernet address.
type MAC [6]byte

// EtherTypes (IEEE 802, IANA).
const (
	typeIPv4          = 0x0800
	typeVLAN          = 0x8100
	typeIPv6          = 0x86dd
	typeSlowProtocols = 0x8809
)

// minFrame is the minimum length of a frame without its checksum (IEEE 802.3, 4.2.3.3).
const minFrame = 60

// ethernet returns a frame's header, with an IEEE 802.1Q tag unless vlan is 0.
func ethernet(to, from MAC, vlan, etherType uint16) []byte {
	frame := append(append([]byte{}, to[:]...), from[:]...)
	if vlan != 0 {
		frame = binary.BigEndian.AppendUint16(frame, typeVLAN)
		frame = binary.BigEndian.AppendUint16(frame, vlan)
	}
	return binary.BigEndian.AppendUint16(frame, etherType)
}

// checksum returns the Internet checksum (RFC 1071).
func checksum(data []byte) uint16 {
	var sum uint32
	for i, char := range data {
		sum += uint32(char) << (8 * (1 - i%2))
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
