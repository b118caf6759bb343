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
	leftOut   int                   // parts of actions that are not understood
}

func newRenamer(k key, f *found, stays, prose vocabulary) *renamer {
	r := &renamer{
		key: k, found: f, stays: stays, prose: prose, words: map[string]string{}, addresses: map[netip.Prefix]netip.Addr{},
		flipped: map[string]netip.Addr{}, registers: map[uint32]uint32{}, kept: map[string]bool{},
	}
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
	after := 0 // the offset after a phrase
	tokens(text, func(before []byte, t token) {
		at := len(before)
		if at < after {
			return
		}
		if name := ""; t.kind == word {
			if name = r.found.phrase(text, at, t.text); name != "" {
				b.WriteString(r.replacedPhrase(name))
				after = at + len(name)
				return
			}
			if r.found.isKnown(before, t.text, text[at+len(t.text):]) {
				b.WriteString(r.single(string(t.text)))
				return
			}
		}
		b.Write(r.token(before, t, isProse))
	})
	return b.Bytes()
}

// name returns a name, or another value of a database, with everything replaced.
func (r *renamer) name(text string) string { return string(r.text([]byte(text), false)) }

func (r *renamer) token(before []byte, t token, isProse bool) []byte {
	switch t.kind {
	case word:
		if to := r.decimal(before, t.text); to != nil {
			return to
		}
		return r.word(t.text, isProse)
	case uuid:
		return []byte(r.uuid(string(t.text)))
	case uuidStart:
		if r.found.hasUUID(t.text[:keptDigits]) {
			return []byte(r.uuid(string(t.text)))
		}
		return append(bytes.Clone(r.word(t.text[:keptDigits], isProse)), r.text(t.text[keptDigits:], isProse)...)
	case mac:
		if bytes.HasSuffix(before, []byte("/")) { // a mask
			return t.text
		}
		to := r.key.mac([6]byte(bytesOf(t.text)))
		return inGroups(to[:], t.text)
	case wide:
		return inGroups(r.key.wide(bytesOf(t.text)), t.text)
	case vendor:
		return r.vendor(t.text)
	case address:
		return r.addressText(t.text)
	case numbers:
		return r.numbersIn(t.text)
	case wildcard:
		return r.wildcard(t.text)
	case reversed:
		return r.reversed(t.text)
	case encoded:
		return r.encodedText(t.text)
	case number:
		return r.number(before, t)
	case octets:
		return r.octets(t.text, bytes.HasSuffix(before, []byte("note:")))
	}
	return t.text
}

// word replaces a word. The first eight digits of a UUID stay, as in the UUID.
func (r *renamer) word(text []byte, isProse bool) []byte {
	plain := string(text)
	if len(text) > keptDigits && run(text, isHex) == len(text) && r.found.hasUUID(text[:keptDigits]) {
		return []byte(r.uuid(plain))
	}
	m, before, ok := plainMAC(text)
	if isNumber := run(text, isDigit) == len(text) && !r.found.macs[m] && !strings.HasPrefix(plain, "0000"); ok && !isNumber {
		if before == 0 {
			to := r.key.mac(m)
			return inGroups(to[:], text)
		}
		return inGroups(r.key.wide(bytesOf(text)), text)
	}
	if r.found.isSystemID(plain) && len(text) <= keptDigits {
		return []byte(r.uuid(plain))
	}
	lower := strings.ToLower(plain)
	if r.stays.has(plain) || r.found.hasUUID(text) || isProse && r.prose[lower] && !r.found.words[lower] {
		return text
	}
	if _, known := r.words[plain]; !known {
		r.words[plain] = r.key.name(plain)
	}
	return []byte(r.words[plain])
}

// decimal replaces an IPv4 address that was found and is written as a decimal number; it returns nil for another number.
func (r *renamer) decimal(before, text []byte) []byte {
	const shortest, longest = 8, 10
	if len(text) < shortest || len(text) > longest || run(text, isDigit) < len(text) {
		return nil
	}
	value, err := strconv.ParseUint(string(text), 10, 32)
	to, known := r.registers[uint32(value)]
	if err != nil || !known || isCounter(fieldBefore(bytes.TrimSuffix(before, []byte(":")))) {
		return nil
	}
	return strconv.AppendUint(nil, uint64(to), 10)
}

// isCounter reports whether what has a name counts something, or is a cookie.
func isCounter(name []byte) bool {
	return slices.Contains([]string{"cookie", "n_packets", "n_bytes", "packets", "bytes", "packet_count", "byte_count"}, string(name))
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
	return inGroups(r.key.vendor(b[:]), text)
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
	switch last := bytes.LastIndexByte(plain, ':') + 1; {
	case last > 0 && bytes.IndexByte(plain, '.') > 0:
		if at, ok := embedded(a); ok && at == 12 {
			inner := to.As16()
			written = string(plain[:last]) + addressOf(inner[12:]).String()
		}
	case to.Is4In6():
		inner := to.As16()
		written = fmt.Sprintf("::ffff:%x:%x", binary.BigEndian.Uint16(inner[12:]), binary.BigEndian.Uint16(inner[14:]))
	}
	if !bytes.ContainsAny(plain, ".:") {
		separator := plain[bytes.IndexAny(plain, "-_")]
		written = strings.ReplaceAll(written, ".", string(separator))
	}
	if masked {
		written += "/" + string(mask)
	}
	return []byte(written)
}

// numbersIn replaces the IPv4 addresses that were found among numbers between dots.
func (r *renamer) numbersIn(text []byte) []byte {
	parts := bytes.Split(text, []byte("."))
	for i := 0; i+4 <= len(parts); i++ {
		a, err := netip.ParseAddr(string(bytes.Join(parts[i:i+4], []byte("."))))
		if err == nil && r.found.addresses[a] {
			copy(parts[i:], decimals(r.octetsOfAddress(a.AsSlice())))
			i += 3
		}
	}
	return bytes.Join(parts, []byte("."))
}

// wildcard replaces the octets of an IPv4 address before a star.
func (r *renamer) wildcard(text []byte) []byte {
	parts := bytes.Count(text, []byte(".")) + 1
	a, err := netip.ParseAddr(string(text) + strings.Repeat(".0", 4-parts))
	if err != nil {
		return text
	}
	to := r.replaced(a, 8*parts).As4()
	return bytes.Join(decimals(to[:parts]), []byte("."))
}

// decimals returns the octets of an address as decimal numbers.
func decimals(a []byte) (all [][]byte) {
	for _, octet := range a {
		all = append(all, strconv.AppendUint(nil, uint64(octet), 10))
	}
	return all
}

// reversed replaces an address whose octets, or hexadecimal digits, are in reverse order.
func (r *renamer) reversed(text []byte) []byte {
	a, bits := forward(text)
	to := r.replaced(a, bits).AsSlice()
	parts := bytes.Split([]byte(hex.EncodeToString(to)), nil)
	if a.Is4() {
		parts = decimals(to)
		bits /= 2
	}
	parts = parts[:bits/4]
	slices.Reverse(parts)
	return bytes.Join(parts, []byte("."))
}

// encodedText replaces what has percent-encoded separators, and encodes these.
func (r *renamer) encodedText(text []byte) []byte {
	plain, ends := decoded(text)
	var separators []byte
	for i, c := range plain {
		if i == 0 && ends[i] > 1 || i > 0 && ends[i]-ends[i-1] > 1 {
			separators = append(separators, c)
		}
	}
	var to bytes.Buffer
	for _, c := range r.text(plain, false) {
		if bytes.IndexByte(separators, c) >= 0 && !isWordPart(c) {
			fmt.Fprintf(&to, "%%%02X", c)
		} else {
			to.WriteByte(c)
		}
	}
	return to.Bytes()
}

// number replaces the addresses and MAC addresses in a hexadecimal number, as fields, registers and labels of connections
// hold them. A cookie is something else.
func (r *renamer) number(before []byte, t token) []byte {
	name := t.field
	if name == nil {
		name = fieldBefore(bytes.TrimSuffix(before, []byte(":")))
	}
	if isCounter(name) {
		return t.text
	}
	plain, mask, masked := strings.Cut(strings.ToLower(string(t.text)), "/")
	digits, of := plain[2:], classOf(string(name))
	to, known := r.ofField(of, digits, masked)
	if !known {
		to, known = r.prefix(strings.TrimLeft(digits, "0"), mask)
	}
	if masked {
		of = ofNumber
	}
	if !known {
		to = r.registersIn(r.macsIn(digits), of)
	}
	if to == digits && len(digits) > keptDigits && r.found.hasUUID([]byte(digits[:keptDigits])) {
		to = r.uuid(digits)
	}
	if to == digits {
		return t.text
	}
	to = strings.TrimLeft(to, "0")
	if digits[0] == '0' { // Open vSwitch prints no leading zeros
		to = strings.Repeat("0", max(0, len(digits)-len(to))) + to
	}
	to = "0x" + to
	if masked {
		to += "/" + mask
	}
	return []byte(to)
}

// classOf returns what a field of OpenFlow holds, by its name (ovs-fields(7)).
func classOf(name string) class {
	name = strings.ToLower(name)
	for _, prefix := range []string{"nxm_nx_", "nxm_of_", "oxm_of_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	switch name {
	case "eth_src", "eth_dst", "dl_src", "dl_dst", "arp_sha", "arp_tha", "nd_sll", "nd_tll", "ipv6_nd_sll", "ipv6_nd_tll":
		return ofMAC
	case "ip_src", "ip_dst", "nw_src", "nw_dst", "ipv4_src", "ipv4_dst", "arp_spa", "arp_tpa", "tun_src", "tun_dst", "tun_ipv4_src", "tun_ipv4_dst",
		"ipv6_src", "ipv6_dst", "nd_target", "ipv6_nd_target", "ct_nw_src", "ct_nw_dst", "ct_ipv6_src", "ct_ipv6_dst":
		return ofAddress
	}
	if digits, isRegister := strings.CutPrefix(strings.TrimLeft(name, "x"), "reg"); isRegister && isQuantity(digits) {
		number, _ := strconv.Atoi(digits)
		return classOfRegister(number)
	}
	return ofNumber
}

// classOfRegister returns what a register of 32 bits can hold: OVN has addresses in the first ones (lib/logical-fields.h), but labels
// and numbers of samples in the fourth.
func classOfRegister(number int) class {
	const labels, last = 3, 7
	if number != labels && number <= last {
		return ofAddressRegister
	}
	return ofRegister
}

// ofField replaces the digits of a value that is written into a field of addresses or MAC addresses.
func (r *renamer) ofField(of class, digits string, isMasked bool) (to string, known bool) {
	size := map[class]int{ofMAC: 12, ofAddress: 8}[of]
	if of == ofAddress && len(digits) > size {
		size = 32
	}
	if isMasked || size == 0 || len(digits) > size {
		return "", false
	}
	value, err := hex.DecodeString(strings.Repeat("0", size-len(digits)) + digits)
	if err != nil {
		return "", false
	}
	r.value(of, value)
	return hex.EncodeToString(value), true
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

// registersIn replaces each 32 bits that are an IPv4 address, or a part of an IPv6 address, that was found. In a register, so is
// an address that was not found.
func (r *renamer) registersIn(digits string, of class) string {
	const size = 8
	first := len(digits) % size
	var to strings.Builder
	for end := first; end <= len(digits); end += size {
		part := digits[max(0, end-size):end]
		if value, err := strconv.ParseUint(part, 16, 32); err == nil {
			is, known := r.registers[uint32(value)]
			if !known && len(digits) <= size {
				is, known = r.inRegister(uint32(value), of)
			}
			if known {
				part = fmt.Sprintf("%0*x", len(part), is)
			}
		}
		to.WriteString(part)
	}
	value, err := hex.DecodeString(digits)
	if is6 := err == nil && len(value) == 16 && addressOf(value).IsGlobalUnicast(); is6 && of != ofNumber && to.String() == digits {
		return hex.EncodeToString(r.octetsOfAddress(value))
	}
	return to.String()
}

// inRegister replaces an IPv4 address in a register: any, or one of a private network (RFC 1918, RFC 6598) or of a network that was
// found where the register can hold something else.
func (r *renamer) inRegister(value uint32, of class) (to uint32, known bool) {
	a := addressOf(binary.BigEndian.AppendUint32(nil, value))
	known = of == ofAddressRegister || of == ofRegister && (a.IsPrivate() || a.As4()[0] == 100 && a.As4()[1]&0xc0 == 64)
	for bits := smallestNetwork; bits < 32 && !known && of == ofRegister; bits++ {
		known = r.found.prefixes[netip.PrefixFrom(a, bits).Masked()]
	}
	if isSpecial(a) || !known {
		return value, false
	}
	r.found.addresses[a] = true
	return binary.BigEndian.Uint32(r.octetsOfAddress(a.AsSlice())), true
}

// macsIn replaces the first MAC address in the digits of a number, whose leading zeros are not written. One that begins
// with two zero bytes can be any number.
func (r *renamer) macsIn(digits string) string {
	const ofMAC, zeros = 12, "000"
	padded := zeros + digits
	for i := 0; i+ofMAC <= len(padded); i++ {
		m, _, ok := plainMAC([]byte(padded[i : i+ofMAC]))
		if ok && r.found.macs[m] && m[0]&groupBit == 0 && (m[0] != 0 || m[1] != 0) {
			to := r.key.mac(m)
			return strings.TrimLeft(padded[:i]+hex.EncodeToString(to[:])+padded[i+ofMAC:], "0")
		}
	}
	return digits
}
