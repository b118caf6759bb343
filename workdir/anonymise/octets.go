package anonymise

import (
	"net/netip"
)

// octet returns what is understood at the beginning of bytes of an unknown form, replaced, and its length in them; nil
// for nothing.
func (r *renamer) octet(data []byte) (replaced []byte, length int) {
	if n := r.addressAt(data); n > 0 && (len(data) == n || r.addressAt(data[1:]) == 0) { // of 8.8.8.8 after an 8, the later
		return r.octetsOfAddress(data[:n]), n
	}
	if len(data) >= 6 && r.found.macs[[6]byte(data[:6])] {
		to := r.key.mac([6]byte(data[:6]))
		return to[:], len(to)
	}
	if to := r.routeAt(data); to != nil {
		return to, len(to)
	}
	return r.textAt(data)
}

// addressAt returns the length of the address that was found at the beginning of the bytes, 0 for none.
func (r *renamer) addressAt(data []byte) int {
	for _, size := range []int{16, 4} {
		if len(data) >= size && r.found.addresses[addressOf(data[:size])] {
			return size
		}
	}
	return 0
}

// routeAt returns the destination of a route at the beginning of the bytes as DHCP has it (RFC 3442: the length of the
// prefix, and the octets that it covers), replaced; nil for none.
func (r *renamer) routeAt(data []byte) []byte {
	length := int(data[0])
	n := 1 + (length+7)/8
	if length <= smallestNetwork || length > 24 || len(data) < n {
		return nil
	}
	var octets [4]byte
	copy(octets[:], data[1:n])
	a := netip.AddrFrom4(octets)
	if !r.found.prefixes[netip.PrefixFrom(a, length)] {
		return nil
	}
	return append([]byte{data[0]}, r.replaced(a, length).AsSlice()[:n-1]...)
}

// textAt returns the text at the beginning of the bytes, replaced, and its length; nil for none.
func (r *renamer) textAt(data []byte) (replaced []byte, length int) {
	const shortest = 4
	if !isWordPart(data[0]) {
		return nil, 0
	}
	n := run(data, func(b byte) bool { return isPrintable(b) && b < 0x80 })
	if n < shortest {
		return nil, 0
	}
	return r.text(data[:n], false), n
}
