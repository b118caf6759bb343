package packet

import (
	"encoding/binary"
	"net/netip"
)

const protocolIGMP, protocolICMPv6 = 2, 58 // of IP (IANA)

// MulticastReport returns the message by which a host joins a group: an IGMPv2
// membership report (RFC 2236, 2) or an MLDv1 listener report (RFC 2710, 3).
func MulticastReport(from MAC, vlan uint16, group netip.Addr) []byte {
	const membershipReport = 0x16
	if group.Is4() {
		return igmp(from, vlan, group, membershipReport, group)
	}
	return mld(from, vlan, group)
}

// IGMPQuery returns an IGMPv2 general query (RFC 2236, 2).
func IGMPQuery(from MAC, vlan uint16) []byte {
	const membershipQuery = 0x11
	allSystems := netip.AddrFrom4([4]byte{224, 0, 0, 1})
	return igmp(from, vlan, allSystems, membershipQuery, netip.IPv4Unspecified())
}

func igmp(from MAC, vlan uint16, to netip.Addr, kind byte, group netip.Addr) []byte {
	message := append([]byte{kind, 0, 0, 0}, group.AsSlice()...)
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	const headerWords, length = 6, 4*6 + 8
	ip := []byte{0x40 | headerWords, 0xc0, 0, length, 0, 0, 0, 0, 1, protocolIGMP, 0, 0}
	ip = append(ip, 192, 0, 2, 1) // a querier needs an address; this one is for documentation (RFC 5737)
	ip = append(ip, to.AsSlice()...)
	ip = append(ip, 0x94, 4, 0, 0) // router alert (RFC 2113)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	low := to.As4()
	frame := ethernet(MAC{0x01, 0x00, 0x5e, low[1] & 0x7f, low[2], low[3]}, from, vlan, typeIPv4)
	return append(append(frame, ip...), message...)
}

func mld(from MAC, vlan uint16, group netip.Addr) []byte {
	const listenerReport = 131
	source, to := netip.MustParseAddr("fe80::1").As16(), group.As16()
	message := append([]byte{listenerReport, 0, 0, 0, 0, 0, 0, 0}, to[:]...)
	pseudo := append(append(source[:], to[:]...), 0, 0, 0, byte(len(message)), 0, 0, 0, protocolICMPv6) // RFC 8200, 8.1
	binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
	hopByHop := []byte{protocolICMPv6, 0, 5, 2, 0, 0, 1, 0} // router alert (RFC 2711)
	ip := []byte{0x60, 0, 0, 0, 0, byte(len(hopByHop) + len(message)), 0, 1}
	ip = append(append(ip, source[:]...), to[:]...)
	frame := ethernet(MAC{0x33, 0x33, to[12], to[13], to[14], to[15]}, from, vlan, typeIPv6)
	return append(append(append(frame, ip...), hopByHop...), message...)
}
