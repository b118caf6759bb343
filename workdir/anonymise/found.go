package anonymise

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// found is what the texts of all nodes hold that is replaced.
type found struct {
	words     map[string]bool // without those that stay, in lower case
	prose     map[string]bool // words of texts for people: they stay if they are not among words
	addresses map[netip.Addr]bool
	macs      map[[6]byte]bool
	uuids     map[string]bool       // with dashes, in lower case
	starts    map[string]bool       // the first eight digits of UUIDs, and the first six, which names of tunnels have
	systemIDs map[string]bool       // those of UUIDs by which chassis are known
	phrases   map[string][]string   // names of words that all stay, by their first words
	singles   map[string]bool       // names of one word that has a meaning elsewhere
	attached  map[netip.Prefix]bool // the IPv4 networks in which an interface has an address
	excluded  map[netip.Prefix]bool
	prefixes  map[netip.Prefix]bool // with masks
}

// ofTunnel is the number of digits of a chassis's name in the name of a tunnel's port (controller/encaps.c of OVN).
const ofTunnel = 6

func newFound() *found {
	return &found{
		words: map[string]bool{}, prose: map[string]bool{}, addresses: map[netip.Addr]bool{}, macs: map[[6]byte]bool{}, uuids: map[string]bool{},
		starts: map[string]bool{}, systemIDs: map[string]bool{}, phrases: map[string][]string{}, singles: map[string]bool{}, attached: map[netip.Prefix]bool{}, excluded: map[netip.Prefix]bool{},
		prefixes: map[netip.Prefix]bool{},
	}
}

// add adds what a text holds. isProse says that the text is for people, as a log is.
func (f *found) add(text []byte, isProse bool, stays vocabulary) {
	excludes := false // what follows !=, which may be a list
	tokens(text, func(before []byte, t token) {
		if t.kind == other {
			excludes = bytes.Contains(t.text, []byte("!=")) || excludes && len(bytes.Trim(t.text, " ,{")) == 0
		}
		switch t.kind {
		case word:
			excludes = false
			f.addWord(t.text, isProse, stays)
		case uuid:
			text := dashed(t.text)
			f.uuids[text], f.starts[text[:keptDigits]], f.starts[text[:ofTunnel]] = true, true, true
			if beforeSystemID.Match(before[max(0, len(before)-64):]) {
				f.addSystemID(text)
			}
		case mac:
			f.macs[[6]byte(bytesOf(t.text))] = true
		case wide:
			if m, ok := macIn(bytesOf(t.text)); ok {
				f.macs[m] = true
			}
		case address:
			f.addAddress(t.text, excludes)
		case numbers:
			if parts := bytes.Split(t.text, []byte(".")); len(parts) == withPort {
				if a, err := netip.ParseAddr(string(bytes.Join(parts[:4], []byte(".")))); err == nil && !isSpecial(a) {
					f.addresses[a] = true
				}
			}
		case reversed:
			if a, bits := forward(t.text); bits == a.BitLen() {
				f.addresses[a] = true
			}
		case encoded:
			plain, _ := decoded(t.text)
			f.add(plain, isProse, stays)
		case octets: // of userdata; a note has texts alone
			data, _ := hex.DecodeString(string(bytes.ReplaceAll(t.text, []byte("."), nil)))
			f.addOctets(data)
			if log := []byte{0, 0, 0, 7}; len(data) > 10 && bytes.HasPrefix(data, log) { // the name of an ACL
				f.addName(string(data[10:]), stays, false)
			}
		}
	})
}

// withPort is the number of numbers of an IPv4 address with a port, as tcpdump prints it.
const withPort = 5

func (f *found) addWord(text []byte, isProse bool, stays vocabulary) {
	into := f.words
	if isProse {
		into = f.prose
	}
	if m, _, ok := plainMAC(text); ok && run(text, isDigit) < len(text) {
		f.macs[m] = true
	} else if word := string(text); !stays.has(word) {
		into[strings.ToLower(word)] = true
	}
}

// smallestNetwork is the length of the shortest prefix that is taken for that of an interface's network.
const smallestNetwork = 8

func (f *found) addAddress(text []byte, isExcluded bool) {
	a, mask, ok := parseAddress(text)
	bits := ones(mask)
	if !ok || bits < 0 {
		return
	}
	f.addresses[a] = true
	if at, ok := embedded(a); ok {
		inner := a.As16()
		f.addresses[addressOf(inner[at:at+4])] = true
	}
	network := netip.PrefixFrom(a, bits).Masked()
	if isExcluded {
		f.excluded[network] = true
	}
	if bits < a.BitLen() {
		f.prefixes[network] = true
	}
	if a.Is4() && bits >= smallestNetwork && bits < 32 && network.Addr() != a {
		f.attached[network] = true
	}
}

// parseAddress reads an address with a mask, or without one: then all bits of the mask are set.
func parseAddress(text []byte) (a netip.Addr, mask net.IPMask, ok bool) {
	plain, masked, isMasked := strings.Cut(string(text), "/")
	if !strings.ContainsAny(plain, ".:") {
		plain = strings.NewReplacer("-", ".", "_", ".").Replace(plain)
	}
	a, err := netip.ParseAddr(plain)
	if err != nil {
		return a, nil, false
	}
	if !isMasked {
		return a, net.CIDRMask(a.BitLen(), a.BitLen()), true
	}
	if prefix, err := netip.ParsePrefix(plain + "/" + masked); err == nil {
		return a, net.CIDRMask(prefix.Bits(), a.BitLen()), true
	}
	of, err := netip.ParseAddr(masked)
	if err != nil || of.BitLen() != a.BitLen() {
		return a, nil, false
	}
	return a, net.IPMask(of.AsSlice()), true
}

// ones returns the number of bits that are set in a mask, -1 if these are not its first ones.
func ones(mask net.IPMask) int {
	n, size := mask.Size()
	if size == 0 {
		return -1
	}
	return n
}

// dashed returns a UUID with dashes, in lower case.
func dashed(text []byte) string {
	digits := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(string(text)))
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// plainMAC reads a MAC address without separators, and returns how many digits are before it: the digits of one, those of a
// datapath ID, of the ID of a bridge with its priority, or of a WWN (IEEE 802, NAA 1 and 2), or those of an EUI-64.
func plainMAC(text []byte) (m [6]byte, before int, ok bool) {
	const digits, wide = 12, 16
	if len(text) != digits && len(text) != wide || run(text, isHex) != len(text) {
		return m, 0, false
	}
	octets := bytesOf(text)
	if len(text) == digits {
		return [6]byte(octets), 0, true
	}
	m, ok = macIn(octets)
	return m, wide - digits, ok
}

// macIn returns the MAC address in eight bytes: an EUI-64 of it (RFC 4291, appendix A), or what begins with two other bytes.
func macIn(b []byte) (m [6]byte, ok bool) {
	switch {
	case len(b) != 8:
		return m, false
	case isEUI(b):
		return [6]byte(slices.Concat(b[:3], b[5:])), true
	case b[1] == 0 && slices.Contains([]byte{0x00, 0x10, 0x20, 0x80}, b[0]):
		return [6]byte(b[2:]), true
	}
	return m, false
}

func isEUI(b []byte) bool { return b[3] == 0xff && b[4] == 0xfe }

// bytesOf returns the bytes that hexadecimal digits in groups stand for: a group of one or two digits is a byte.
func bytesOf(text []byte) (all []byte) {
	for i := 0; i < len(text); {
		n := run(text[i:], isHex)
		if n%2 == 1 {
			all = append(all, digit(text[i]))
		}
		for j := i + n%2; j < i+n; j += 2 {
			all = append(all, digit(text[j])<<4|digit(text[j+1]))
		}
		i += max(n, 1)
	}
	return all
}

// inGroups writes bytes as a text has others: with its separators, upper case letters, and zeros at the beginning of a byte or
// without them.
func inGroups(b, text []byte) (to []byte) {
	isShort, upper := false, bytes.ContainsAny(text, "ABCDEF")
	for i := 0; i < len(text); {
		n := run(text[i:], isHex)
		isShort = isShort || n == 1
		i += n + 1
	}
	for i := 0; i < len(text); {
		n := run(text[i:], isHex)
		if n == 0 {
			to, i = append(to, text[i]), i+1
			continue
		}
		if isShort {
			to, b = strconv.AppendUint(to, uint64(b[0]), 16), b[1:]
		} else {
			to, b = hex.AppendEncode(to, b[:n/2]), b[n/2:]
		}
		i += n
	}
	if upper {
		to = bytes.ToUpper(to)
	}
	return to
}

// forward returns the address whose octets or digits a text has in reverse order, and the number of its bits that the text
// has.
func forward(text []byte) (a netip.Addr, bits int) {
	parts := strings.Split(string(text), ".")
	isDigits := len(parts) > 4 || strings.ContainsAny(string(text), "abcdefABCDEF")
	slices.Reverse(parts)
	if isDigits {
		all, _ := hex.DecodeString(strings.Join(parts, "") + strings.Repeat("0", 32-len(parts)))
		return addressOf(all), 4 * len(parts)
	}
	var octets [4]byte
	for i, part := range parts {
		value, _ := strconv.Atoi(part)
		octets[i] = byte(value)
	}
	return netip.AddrFrom4(octets), 8 * len(parts)
}

// digit returns the value of a hexadecimal digit.
func digit(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// beforeSystemID matches what is before the UUID of a chassis in outputs of tools.
var beforeSystemID = lazyregexp.New(`(?:system-id *= *|chassis_name *[=:] *|Chassis )"?$`)

// addSystemID adds the UUID by which a chassis is known. Flows do not have its digits, and names of tunnels the first ones.
func (f *found) addSystemID(id string) {
	id = strings.ToLower(id)
	f.systemIDs[id[:keptDigits]], f.systemIDs[id[:ofTunnel]] = true, true
}

// isSystemID reports whether digits are the beginning of the UUID of a chassis.
func (f *found) isSystemID(digits string) bool {
	digits = strings.ToLower(digits)
	return len(digits) == ofTunnel && f.systemIDs[digits] || len(digits) >= keptDigits && f.systemIDs[digits[:keptDigits]]
}

// hasUUID reports whether a UUID with these first digits was found.
func (f *found) hasUUID(start []byte) bool { return f.starts[strings.ToLower(string(start))] }

// sortedKeys returns the keys of a set in their order.
func sortedKeys(set map[string]bool) []string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// addOctets adds the addresses and MAC addresses in nested actions: they are known in registers then.
func (f *found) addOctets(data []byte) {
	for ; len(data) >= 12; data = data[1:] { // the header of set_field, and of the field
		if data[0] != 0 || data[1] != setField {
			continue
		}
		at, ok := fieldOf(data[4:])
		end := 4 + at.header + at.size
		if !ok || at.masked || len(data) < end {
			continue
		}
		switch value := data[4+at.header : end]; {
		case at.class == ofMAC && len(value) == 6:
			f.macs[[6]byte(value)] = true
		case at.class == ofAddress:
			f.addresses[addressOf(value)] = true
		}
	}
}
