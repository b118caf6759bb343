package anonymise

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
)

// reader reads the arguments of an action of OVN (include/ovn/actions.h, lib/actions.c of OVN), and returns them with
// everything replaced. It returns false for bytes that are something else.
type reader = func(data []byte) ([]byte, bool)

// argumentsOf returns the reader for the action of a number, nil for one that is not understood.
func (r *renamer) argumentsOf(action uint32) reader {
	switch action {
	case 2:
		return r.dhcp4
	case 5:
		return r.dhcp6
	case 7:
		return r.logged
	case 8:
		return r.advertisement
	case 15:
		return r.event
	case 28, 29, 30: // DHCP relays, and the address in an ICMP error
		return r.addresses4
	case 0, 3, 9, 10, 11, 12, 14, 20, 22, 24: // ARP, ND, ICMP, TCP reset, reject
		return r.actions
	case 1, 4, 6, 13, 16, 17, 18, 19, 21, 23, 25, 26, 27: // nothing, or numbers and the place of a result
		const longest = 12
		return func(data []byte) ([]byte, bool) { return data, len(data) <= longest }
	}
	return nil
}

// userdata returns the bytes of an action of OVN with everything replaced. What is not understood becomes zeros.
func (r *renamer) userdata(data []byte) []byte {
	const header, padding = 8, 4
	if len(data) < header || data[0] != 0 || data[1] != 0 || [padding]byte(data[padding:header]) != [padding]byte{} {
		return r.unknown(data)
	}
	rest := data[header:]
	if read := r.argumentsOf(binary.BigEndian.Uint32(data)); read != nil {
		if to, ok := read(slices.Clone(rest)); ok {
			return slices.Concat(data[:header], to)
		}
	}
	return slices.Concat(data[:header], r.unknown(rest))
}

// cursor takes bytes from the beginning of data.
type cursor struct{ data []byte }

func (c *cursor) take(n int) ([]byte, bool) {
	if n < 0 || n > len(c.data) {
		return nil, false
	}
	taken := c.data[:n]
	c.data = c.data[n:]
	return taken, true
}

// result takes the field of a result, and the offset in it.
func (c *cursor) result() ([]byte, bool) {
	field, ok := fieldOf(c.data)
	if !ok {
		return nil, false
	}
	return c.take(field.header + 4)
}

// options replaces the values of options, whose codes and lengths have so many bytes.
func (c *cursor) options(size int, value func(code int, value []byte) ([]byte, bool)) (to []byte, ok bool) {
	number := func(b []byte) int {
		if size == 1 {
			return int(b[0])
		}
		return int(binary.BigEndian.Uint16(b))
	}
	for len(c.data) > 0 {
		head, ok := c.take(2 * size)
		if !ok {
			return nil, false
		}
		was, ok := c.take(number(head[size:]))
		if !ok {
			return nil, false
		}
		is, ok := value(number(head), was)
		if !ok || len(is) >= 1<<(8*size) {
			return nil, false
		}
		to = append(to, head[:size]...)
		if size == 1 {
			to = append(to, byte(len(is)))
		} else {
			to = binary.BigEndian.AppendUint16(to, uint16(len(is)))
		}
		to = append(to, is...)
	}
	return to, true
}

// dhcp4 reads the offered address and the options of DHCP (lib/ovn-l7.h of OVN).
func (r *renamer) dhcp4(data []byte) ([]byte, bool) {
	c := &cursor{data}
	result, okResult := c.result()
	offer, ok := c.take(4)
	if !okResult || !ok {
		return nil, false
	}
	offered, _ := r.addresses4(offer)
	options, ok := c.options(1, r.option4)
	return slices.Concat(result, offered, options), ok
}

func (r *renamer) option4(code int, value []byte) ([]byte, bool) {
	switch code {
	case 1, 3, 6, 7, 9, 16, 21, 28, 32, 41, 42, 44, 54, 150, 253:
		return r.addresses4(value)
	case 33, 121, 249:
		return r.routes(value)
	case 119:
		return r.labels(value)
	case 66: // an address or a text
		if len(value) == 4 && slices.ContainsFunc(value, func(b byte) bool { return !isPrintable(b) }) {
			return r.addresses4(value)
		}
		return r.printed(value)
	case 12, 15, 67, 210, 252, 254:
		return r.printed(value)
	}
	return value, len(value) <= 4 && !r.found.addresses[addressOf(value)]
}

func addressOf(octets []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(octets)
	return a
}

// dhcp6 reads the options of DHCPv6.
func (r *renamer) dhcp6(data []byte) ([]byte, bool) {
	c := &cursor{data}
	result, ok := c.result()
	if !ok {
		return nil, false
	}
	options, ok := c.options(2, func(code int, value []byte) ([]byte, bool) {
		switch code {
		case 2:
			return r.macs(value)
		case 5, 23:
			return r.addresses6(value)
		case 39:
			return r.labels(value)
		case 24, 59, 254:
			return r.printed(value)
		}
		return nil, false
	})
	return slices.Concat(result, options), ok
}

// advertisement reads a router advertisement with its options (RFC 4861, RFC 4191, RFC 8106).
func (r *renamer) advertisement(data []byte) ([]byte, bool) {
	const fixed, ofMAC, ofPrefix, ofMTU, ofRoute, ofServers, ofDomains = 16, 1, 3, 5, 24, 25, 31
	c := &cursor{data}
	_, okResult := c.result()
	_, ok := c.take(fixed)
	for okResult && ok && len(c.data) > 0 {
		if len(c.data) < 2 {
			return nil, false
		}
		var option []byte
		if option, ok = c.take(8 * int(c.data[1])); !ok || len(option) == 0 {
			return nil, false
		}
		value, read := []byte{}, r.addresses6
		switch option[0] {
		case ofMAC:
			value, read = option[2:], r.macs
		case ofPrefix:
			ok = len(option) == 32
			value = option[min(16, len(option)):]
		case ofMTU:
		case ofRoute: // a prefix of up to 16 bytes
			if len(option) > 8 {
				full := append(slices.Clone(option[8:]), make([]byte, 16)...)[:16]
				to, _ := r.addresses6(full)
				copy(option[8:], to)
			}
		case ofServers:
			value = option[8:]
		case ofDomains:
			value, read = option[8:], r.labels
		default:
			return nil, false
		}
		to, isRead := read(value)
		ok = ok && isRead && copy(value, to) == len(to)
	}
	return data, okResult && ok
}

// logged reads the verdict, the severity and the name of an ACL.
func (r *renamer) logged(data []byte) ([]byte, bool) {
	if len(data) < 2 {
		return nil, false
	}
	name, ok := r.printed(data[2:])
	return slices.Concat(data[:2], name), ok
}

// event reads the type and the texts of an event.
func (r *renamer) event(data []byte) ([]byte, bool) {
	c := &cursor{data}
	kind, ok := c.take(4)
	if !ok {
		return nil, false
	}
	options, ok := c.options(2, func(_ int, value []byte) ([]byte, bool) { return r.printed(value) })
	return slices.Concat(kind, options), ok
}

func isPrintable(b byte) bool { return b >= ' ' && b != 0x7f }

// printed replaces everything in a text.
func (r *renamer) printed(value []byte) ([]byte, bool) {
	return r.text(value, false), !slices.ContainsFunc(value, func(b byte) bool { return !isPrintable(b) })
}

// addresses4 replaces IPv4 addresses.
func (r *renamer) addresses4(value []byte) ([]byte, bool) { return r.each(value, 4, r.octetsOfAddress) }

// addresses6 replaces IPv6 addresses.
func (r *renamer) addresses6(value []byte) ([]byte, bool) {
	return r.each(value, 16, r.octetsOfAddress)
}

// macs replaces MAC addresses.
func (r *renamer) macs(value []byte) ([]byte, bool) {
	return r.each(value, 6, func(b []byte) []byte { to := r.key.mac([6]byte(b)); return to[:] })
}

func (r *renamer) octetsOfAddress(b []byte) []byte {
	a := addressOf(b)
	return r.replaced(a, a.BitLen()).AsSlice()
}

func (r *renamer) each(value []byte, size int, change func([]byte) []byte) (to []byte, ok bool) {
	for ; len(value) >= size; value = value[size:] {
		to = append(to, change(value[:size])...)
	}
	return to, len(value) == 0
}

// routes replaces routes as DHCP has them (RFC 3442): the length of a prefix, the octets that it covers, and an address.
func (r *renamer) routes(value []byte) (to []byte, ok bool) {
	c := &cursor{value}
	for len(c.data) > 0 {
		length, _ := c.take(1)
		covered, okPrefix := c.take((int(length[0]) + 7) / 8)
		gateway, ok := c.take(4)
		if !okPrefix || !ok || len(covered) > 4 {
			return nil, false
		}
		var octets [4]byte
		copy(octets[:], covered)
		is := r.replaced(netip.AddrFrom4(octets), int(length[0])).AsSlice()
		to = slices.Concat(to, length, is[:len(covered)], r.octetsOfAddress(gateway))
	}
	return to, true
}

// labels replaces the labels of domain names as DNS has them (RFC 1035, section 4.1.4).
func (r *renamer) labels(value []byte) (to []byte, ok bool) {
	c := &cursor{value}
	for len(c.data) > 0 {
		length, _ := c.take(1)
		to = append(to, length...)
		if n := int(length[0]); n >= 0xc0 { // where the rest of the name is
			pointer, ok := c.take(1)
			if !ok {
				return nil, false
			}
			to = append(to, pointer...)
			continue
		}
		label, okLabel := c.take(int(length[0]))
		is, ok := r.printed(label)
		if !okLabel || !ok || len(is) != len(label) {
			return nil, false
		}
		to = append(to, is...)
	}
	return to, true
}

// unknown returns bytes that are not understood: what can be told apart as text, or as an address or a MAC address that
// was found, is replaced, and the rest becomes zeros unless there are at most three bytes of it.
func (r *renamer) unknown(data []byte) (to []byte) {
	const few = 3
	rest := 0 // bytes at the end of to that are not understood
	leaveOut := func() {
		if rest > few {
			part := to[len(to)-rest:]
			if slices.ContainsFunc(part, func(b byte) bool { return b != 0 }) {
				r.leftOut++
				clear(part)
			}
		}
		rest = 0
	}
	for len(data) > 0 {
		replaced, length := r.octet(data)
		if replaced == nil {
			to, data, rest = append(to, data[0]), data[1:], rest+1
			continue
		}
		if n := len(to) - 1; len(replaced) != length && n >= 0 && int(to[n]) == length { // the length of an option
			to[n] = byte(len(replaced))
		}
		leaveOut()
		to, data = append(to, replaced...), data[length:]
	}
	leaveOut()
	return to
}

// octets replaces everything in the bytes of an action of OpenFlow as ovs-ofctl prints them.
func (r *renamer) octets(text []byte, isNote bool) []byte {
	data, err := hex.DecodeString(string(bytes.ReplaceAll(text, []byte("."), nil)))
	if err != nil {
		return text // octetsLength accepts nothing else
	}
	if isNote {
		data = r.note(data)
	} else {
		data = r.userdata(data)
	}
	to := make([]byte, 0, 3*len(data))
	for _, b := range data {
		to = append(hex.AppendEncode(to, []byte{b}), '.')
	}
	return bytes.TrimSuffix(to, []byte("."))
}

// note replaces what a note has. One of OVN holds a number (struct ovn_field_note_header of include/ovn/actions.h).
func (r *renamer) note(data []byte) []byte {
	const longest = 14
	if bytes.HasPrefix(data, []byte("ovn\x00")) && len(data) <= longest {
		return data
	}
	return r.unknown(data)
}
