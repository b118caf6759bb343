package anonymise

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// renamer replaces names, addresses, MAC addresses and UUIDs, everywhere in the same way.
type renamer struct {
	key       key
	found     *found
	stays     vocabulary
	prose     vocabulary        // further words that stay in texts for people
	words     map[string]string // what words were replaced by so far
	addresses map[netip.Prefix]netip.Addr
	sorted    []netip.Addr          // the addresses that were found
	flipped   map[string]netip.Addr // what addresses with masks that are no prefixes were replaced by so far
	registers map[uint32]uint32     // IPv4 addresses, and each 32 bits of IPv6 addresses
	kept      map[string]bool       // names that stay
}

func newRenamer(k key, f *found, stays, prose vocabulary) *renamer {
	r := &renamer{key: k, found: f, stays: stays, prose: prose, words: map[string]string{}, addresses: map[netip.Prefix]netip.Addr{}, flipped: map[string]netip.Addr{}, registers: map[uint32]uint32{}, kept: map[string]bool{}}
	r.sorted = slices.SortedFunc(maps.Keys(f.addresses), netip.Addr.Compare)
	for _, a := range r.sorted {
		from, to := a.AsSlice(), r.replaced(a, a.BitLen()).AsSlice()
		for ; len(from) > 0; from, to = from[4:], to[4:] {
			if is := binary.BigEndian.Uint32(from); is >= lowestRegister {
				r.registers[is] = binary.BigEndian.Uint32(to)
			}
		}
	}
	return r
}

// lowestRegister is the lowest number that is taken for a part of an address: a lower one can be anything.
const lowestRegister = 1 << 16

// replaced returns what the first n bits of an address are replaced by.
func (r *renamer) replaced(a netip.Addr, n int) netip.Addr {
	at := netip.PrefixFrom(a, n)
	if _, known := r.addresses[at]; !known {
		r.addresses[at] = r.address(a, n)
	}
	return r.addresses[at]
}

// masked returns what an address with a mask is replaced by. Outputs can have bits that the mask has not.
func (r *renamer) masked(a netip.Addr, mask net.IPMask) netip.Addr {
	if and(a, mask) != a {
		return r.replaced(a, a.BitLen())
	}
	if n := ones(mask); n >= 0 {
		return r.replaced(a, n)
	}
	key := a.String() + string(mask)
	if _, known := r.flipped[key]; !known {
		r.flipped[key] = r.maskedBits(a, mask)
	}
	return r.flipped[key]
}

// maskedBits returns what an address with a mask that is no prefix is replaced by.
func (r *renamer) maskedBits(a netip.Addr, mask net.IPMask) netip.Addr {
	for _, known := range []map[netip.Prefix]bool{r.found.excluded, r.found.prefixes} {
		for prefix := range known {
			if to, ok := r.outside(a, mask, prefix); ok {
				return to
			}
		}
	}
	return and(r.replaced(a, a.BitLen()), mask)
}

// outside returns what an address is replaced by that differs from those with a prefix in the last bit of its mask only:
// ovn-controller makes a flow with such a mask for each bit of an address that packets must not have.
func (r *renamer) outside(a netip.Addr, mask net.IPMask, prefix netip.Prefix) (netip.Addr, bool) {
	if prefix.Addr().BitLen() != a.BitLen() {
		return a, false
	}
	last := a.BitLen() - 1
	for mask[last/8]&(0x80>>(last%8)) == 0 {
		last--
	}
	flip := func(of netip.Addr) netip.Addr {
		raw := of.AsSlice()
		raw[last/8] ^= 0x80 >> (last % 8)
		flipped, _ := netip.AddrFromSlice(raw)
		return flipped
	}
	if last >= prefix.Bits() || and(prefix.Addr(), mask) != flip(a) {
		return a, false
	}
	return flip(and(r.replaced(prefix.Addr(), prefix.Bits()), mask)), true
}

// and returns an address with the bits that a mask has.
func and(a netip.Addr, mask net.IPMask) netip.Addr {
	raw := a.AsSlice()
	for i := range raw {
		raw[i] &= mask[i]
	}
	masked, _ := netip.AddrFromSlice(raw)
	return masked
}

// text returns a text in which everything is replaced.
func (r *renamer) text(text []byte, isProse bool) []byte {
	var b bytes.Buffer
	b.Grow(len(text))
	tokens(text, func(before []byte, t token) { b.Write(r.token(before, t, isProse)) })
	return b.Bytes()
}

// name returns a name, or another value of a database, with everything replaced.
func (r *renamer) name(text string) string { return string(r.text([]byte(text), false)) }

func (r *renamer) token(before []byte, t token, isProse bool) []byte {
	switch t.kind {
	case word:
		return r.word(t.text, isProse)
	case uuid:
		return []byte(r.key.uuid(string(t.text)))
	case uuidStart:
		if r.found.hasUUID(t.text[:keptDigits]) {
			return []byte(r.key.uuid(string(t.text)))
		}
		return slices.Concat(r.word(t.text[:keptDigits], isProse), []byte("-"), r.word(t.text[keptDigits+1:], isProse))
	case mac:
		return r.mac(before, t.text)
	case vendor:
		return r.vendor(t.text)
	case address:
		return r.addressText(t.text)
	case number:
		return r.number(before, t.text)
	case octets:
		return r.octets(t.text)
	}
	return t.text
}

// word replaces a word. The first eight digits of a UUID stay, as in the UUID.
func (r *renamer) word(text []byte, isProse bool) []byte {
	if m, ok := plainMAC(text); ok {
		to := r.key.mac(m)
		return append(bytes.Clone(text[:len(text)-2*len(to)]), hex.EncodeToString(to[:])...)
	}
	plain := string(text)
	lower := strings.ToLower(plain)
	if r.stays.has(plain) || r.found.hasUUID(text) || isProse && r.prose[lower] && !r.found.words[lower] {
		return text
	}
	if _, known := r.words[plain]; !known {
		r.words[plain] = r.key.name(plain)
	}
	return []byte(r.words[plain])
}

// mac replaces a MAC address in the form in which it is written. A mask stays.
func (r *renamer) mac(before, text []byte) []byte {
	m, err := net.ParseMAC(string(text))
	if err != nil || bytes.HasSuffix(before, []byte("/")) {
		return text
	}
	to := r.key.mac([6]byte(m))
	separator := string(text[2])
	written := strings.ReplaceAll(net.HardwareAddr(to[:]).String(), ":", separator)
	if bytes.ContainsAny(text, "ABCDEF") {
		written = strings.ToUpper(written)
	}
	return []byte(written)
}

// vendor replaces the first half of a MAC address. What can be a time stays.
func (r *renamer) vendor(text []byte) []byte {
	var b [3]byte
	isTime := true
	for i, limit := range []int{23, 59, 59} {
		part := text[3*i : 3*i+2]
		b[i] = digit(part[0])<<4 | digit(part[1])
		value, err := strconv.Atoi(string(part))
		isTime = isTime && err == nil && value <= limit
	}
	if isTime || b[0]&groupBit != 0 {
		return text
	}
	return []byte(net.HardwareAddr(r.key.vendor(b[:])).String())
}

// addressText replaces an address. Its mask stays.
func (r *renamer) addressText(text []byte) []byte {
	plain, mask, masked := bytes.Cut(text, []byte("/"))
	a, bits, ok := parseAddress(text)
	if !ok && masked { // what follows is no mask
		return slices.Concat(r.addressText(plain), []byte("/"), r.text(mask, false))
	}
	if !ok {
		return text
	}
	to := r.masked(a, bits)
	if to == a {
		return text
	}
	written := to.String()
	if !bytes.ContainsAny(plain, ".:") {
		separator := plain[bytes.IndexAny(plain, "-_")]
		written = strings.ReplaceAll(written, ".", string(separator))
	}
	if masked {
		written += "/" + string(mask)
	}
	return []byte(written)
}

// number replaces the addresses and MAC addresses in a hexadecimal number, as registers and labels of connections hold
// them. A cookie is something else.
func (r *renamer) number(before, text []byte) []byte {
	if bytes.HasSuffix(before, []byte("cookie=")) || bytes.HasSuffix(before, []byte("cookie:")) {
		return text
	}
	plain, mask, masked := strings.Cut(strings.ToLower(string(text)), "/")
	digits := plain[2:]
	to, known := r.prefix(strings.TrimLeft(digits, "0"), mask)
	if !known {
		to = r.registersIn(r.macsIn(digits))
	}
	if to == digits {
		return text
	}
	if digits[0] != '0' { // Open vSwitch prints no leading zeros
		to = strings.TrimLeft(to, "0")
	}
	to = "0x" + to
	if masked {
		to += "/" + mask
	}
	return []byte(to)
}

// prefix replaces the digits of the beginning of an address that was found, whose mask is a hexadecimal number.
func (r *renamer) prefix(digits, mask string) (to string, known bool) {
	size := 8 // digits
	if mask = strings.TrimPrefix(mask, "0x"); len(mask) > size {
		size *= 4
	}
	if len(mask) != size || len(digits) > size {
		return "", false
	}
	value, err := hex.DecodeString(strings.Repeat("0", size-len(digits)) + digits)
	set, errMask := hex.DecodeString(mask)
	if err != nil || errMask != nil {
		return "", false
	}
	bits := ones(set)
	a, _ := netip.AddrFromSlice(value)
	if bits < smallestNetwork || isSpecial(a) {
		return "", false
	}
	first := netip.PrefixFrom(a, bits).Masked()
	at, _ := slices.BinarySearchFunc(r.sorted, first.Addr(), netip.Addr.Compare)
	if at == len(r.sorted) || !first.Contains(r.sorted[at]) {
		return "", false
	}
	return strings.TrimLeft(hex.EncodeToString(r.replaced(a, bits).AsSlice()), "0"), true
}

// registersIn replaces each 32 bits that are an IPv4 address, or a part of an IPv6 address.
func (r *renamer) registersIn(digits string) string {
	const size = 8
	first := len(digits) % size
	var to strings.Builder
	for end := first; end <= len(digits); end += size {
		part := digits[max(0, end-size):end]
		if value, err := strconv.ParseUint(part, 16, 32); err == nil {
			if is, known := r.registers[uint32(value)]; known {
				part = fmt.Sprintf("%0*x", len(part), is)
			}
		}
		to.WriteString(part)
	}
	return to.String()
}

// macsIn replaces the first MAC address in the digits of a number, whose leading zeros are not written. One that begins
// with two zero bytes can be any number.
func (r *renamer) macsIn(digits string) string {
	const ofMAC, zeros = 12, "000"
	padded := zeros + digits
	for i := 0; i+ofMAC <= len(padded); i++ {
		m, ok := plainMAC([]byte("0000" + padded[i:i+ofMAC]))
		if ok && r.found.macs[m] && m[0]&groupBit == 0 && (m[0] != 0 || m[1] != 0) {
			to := r.key.mac(m)
			return strings.TrimLeft(padded[:i]+hex.EncodeToString(to[:])+padded[i+ofMAC:], "0")
		}
	}
	return digits
}
