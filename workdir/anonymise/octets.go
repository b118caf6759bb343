package anonymise

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
)

// octets replaces the addresses, MAC addresses and words in the bytes of an action of OVN.
func (r *renamer) octets(text []byte) []byte {
	parts := strings.Split(string(text), ".")
	data, err := hex.DecodeString(strings.Join(parts, ""))
	const header = 8 // the number of the action, and padding (include/ovn/actions.h)
	if err != nil || len(data) != len(parts) || len(data) < header {
		return text
	}
	to := bytes.Clone(data[:header])
	for rest := data[header:]; len(rest) > 0; {
		replaced, length := r.octet(rest)
		if n := len(to) - 1; len(replaced) != length && int(to[n]) == length { // the length of an option
			to[n] = byte(len(replaced))
		}
		to, rest = append(to, replaced...), rest[length:]
	}
	written := make([]string, len(to))
	for i := range to {
		written[i] = hex.EncodeToString(to[i : i+1])
	}
	return []byte(strings.Join(written, "."))
}

// octet returns what is at the beginning of the bytes, replaced, and its length in them.
func (r *renamer) octet(data []byte) (replaced []byte, length int) {
	if n := r.addressAt(data); n > 0 && (len(data) == n || r.addressAt(data[1:]) == 0) { // of 8.8.8.8 after an 8, the later
		a, _ := netip.AddrFromSlice(data[:n])
		return r.replaced(a, a.BitLen()).AsSlice(), n
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
		if len(data) >= size {
			if a, _ := netip.AddrFromSlice(data[:size]); r.found.addresses[a] {
				return size
			}
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

// textAt returns the word, the UUID or the address in text that was found at the beginning of the bytes, replaced, and
// its length; or else one byte, or a word that stays.
func (r *renamer) textAt(data []byte) (replaced []byte, length int) {
	const shortest = 3
	const longest = 64 // the octets of a text are read again at each one that is no text
	n := run(data[:min(len(data), longest)], func(c byte) bool { return c < 0x80 && (isWordPart(c) || strings.IndexByte("-_.:", c) >= 0) })
	if n < shortest || !isWordPart(data[0]) {
		return data[:1], 1
	}
	first := next(data[:n], 0)
	length = len(first.text)
	switch first.kind {
	case uuid:
		if r.found.uuids[dashed(first.text)] {
			return []byte(r.key.uuid(string(first.text))), length
		}
	case address:
		if a, _, ok := parseAddress(first.text); ok && r.found.addresses[a] {
			return r.addressText(first.text), length
		}
	case word:
		text := string(first.text)
		if length >= shortest && r.found.words[strings.ToLower(text)] || r.stays.has(text) && length > 1 {
			return r.word(first.text, false), length
		}
	}
	return data[:1], 1
}
