package anonymise

import (
	"bytes"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// kind is what a token of a text is.
type kind int

const (
	other     kind = iota // stays
	word                  // letters and digits
	uuid                  // also without separators, or with underscores
	uuidStart             // the first ten digits of a UUID
	mac                   // with colons or dashes
	vendor                // the first half of a MAC address, with colons
	address               // perhaps with a mask
	number                // 0x..., perhaps with a mask
	octets                // of userdata of an OpenFlow action: two digits each, between dots
)

// token is a part of a text.
type token struct {
	kind kind
	text []byte
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isHex(c byte) bool      { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isWordPart(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }

// tokens calls use with each part of a text, in their order, and with what is before it. The parts together are the
// text.
func tokens(text []byte, use func(before []byte, t token)) {
	for i := 0; i < len(text); {
		found := next(text, i)
		use(text[:i], found)
		i += len(found.text)
	}
}

// next returns the token that begins at an offset.
func next(text []byte, i int) token {
	rest := text[i:]
	starts := i == 0 || !isWordPart(text[i-1])
	if bytes.HasSuffix(text[:i], []byte("userdata=")) {
		if n := run(rest, func(c byte) bool { return isHex(c) || c == '.' }); n > 0 {
			return token{octets, rest[:n]}
		}
	}
	if starts && (isHex(rest[0]) || rest[0] == ':') {
		for _, read := range []func([]byte) token{readUUID, readMAC, readAddress4, readAddress6, readVendor} {
			if found := read(rest); found.text != nil {
				return found
			}
		}
	}
	if n := startOfUUID(rest); n > 0 && !starts { // after the letters that readWord has split off
		return token{uuidStart, rest[:n]}
	}
	if starts && bytes.HasPrefix(rest, []byte("0x")) {
		return readHex(rest)
	}
	if n := run(rest, isWordPart); n > 0 {
		return readWord(rest, n)
	}
	n := 1
	for n < len(rest) && !isWordPart(rest[n]) && rest[n] != ':' {
		n++
	}
	return token{other, rest[:n]}
}

// run returns the number of bytes at the beginning of a text that are accepted.
func run(text []byte, accept func(byte) bool) (n int) {
	for n < len(text) && accept(text[n]) {
		n++
	}
	return n
}

// ends reports whether no word goes on at an offset.
func ends(text []byte, n int) bool { return n >= len(text) || !isWordPart(text[n]) }

// readWord returns a word of n bytes. One of 32 hexadecimal digits is a UUID; one that goes on as
// tap01234567-89 holds the beginning of one, which is the next token.
func readWord(text []byte, n int) token {
	const compact = 32
	if n == compact && run(text, isHex) == n {
		return token{uuid, text[:n]}
	}
	if before := n - keptDigits; before > 0 && before <= 3 {
		if startOfUUID(text[before:]) > 0 && run(text, func(c byte) bool { return !isDigit(c) }) >= before {
			return token{word, text[:before]}
		}
	}
	return token{word, text[:n]}
}

// startOfUUID returns the length of the first ten digits of a UUID at the beginning of a text, 0 if it has none.
func startOfUUID(text []byte) int {
	const n = keptDigits + 3
	if run(text, isHex) == keptDigits && len(text) >= n && text[keptDigits] == '-' && run(text[keptDigits+1:], isHex) == 2 && ends(text, n) {
		return n
	}
	return 0
}

// readUUID reads a UUID with dashes or underscores, or its beginning.
func readUUID(text []byte) token {
	const length = 36
	if n := startOfUUID(text); n > 0 && (len(text) == n || text[n] != '-' || !ends(text, n)) {
		return token{uuidStart, text[:n]}
	}
	if len(text) < length || !ends(text, length) {
		return token{}
	}
	for i := range length {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != text[8] || text[i] != '-' && text[i] != '_' {
				return token{}
			}
		default:
			if !isHex(text[i]) {
				return token{}
			}
		}
	}
	return token{uuid, text[:length]}
}

// readMAC reads a MAC address. Open vSwitch and OVN print two digits for each byte.
func readMAC(text []byte) token {
	const length = 17
	if len(text) < length || !ends(text, length) || len(text) > length && text[length] == ':' && len(text) > length+1 && isHex(text[length+1]) {
		return token{}
	}
	if _, err := net.ParseMAC(string(text[:length])); err != nil {
		return token{}
	}
	return token{mac, text[:length]}
}

// readVendor reads the first half of a MAC address.
func readVendor(text []byte) token {
	const length = 8
	if len(text) < length || text[2] != ':' || text[5] != ':' || !ends(text, length) || len(text) > length && (text[length] == ':' || text[length] == '.') {
		return token{}
	}
	for _, i := range []int{0, 1, 3, 4, 6, 7} {
		if !isHex(text[i]) {
			return token{}
		}
	}
	return token{vendor, text[:length]}
}

// readAddress4 reads an IPv4 address, with dots, or with dashes or underscores as parts of names have them.
func readAddress4(text []byte) token {
	if !isDigit(text[0]) {
		return token{}
	}
	n := 0
	var separator byte
	for part := range 4 {
		if part > 0 {
			if n >= len(text) || part == 1 && !strings.ContainsRune(".-_", rune(text[n])) || part > 1 && text[n] != separator {
				return token{}
			}
			separator = text[n]
			n++
		}
		digits := run(text[n:], isDigit)
		if value, err := strconv.Atoi(string(text[n : n+digits])); err != nil || value > 255 || digits > 1 && text[n] == '0' {
			return token{}
		}
		n += digits
	}
	if !ends(text, n) {
		return token{}
	}
	if separator == '.' && n+1 < len(text) && text[n] == '.' && isDigit(text[n+1]) {
		return token{} // it has more parts
	}
	if separator != '.' {
		return token{address, text[:n]}
	}
	return token{address, text[:n+maskLength(text[n:])]}
}

// maskLength returns the length of the mask at the beginning of a text: /24, /255.255.255.0, /ffff:: or, after a
// hexadecimal number, /0xff.
func maskLength(text []byte) int {
	if len(text) < 2 || text[0] != '/' || !isHex(text[1]) {
		return 0
	}
	n := 1 + run(text[1:], func(c byte) bool { return isHex(c) || c == '.' || c == ':' || c == 'x' })
	for n > 1 && (text[n-1] == '.' || text[n-1] == ':' && text[n-2] != ':') {
		n--
	}
	if !ends(text, n) {
		return 0
	}
	return n
}

// readAddress6 reads an IPv6 address.
func readAddress6(text []byte) token {
	const longest = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")
	n := run(text[:min(len(text), longest+1)], func(c byte) bool { return isHex(c) || c == ':' })
	if n < len(text) && text[n] == '.' && bytes.Count(text[:n], []byte(":")) > 1 { // it ends as an IPv4 address
		if last := bytes.LastIndexByte(text[:n], ':') + 1; last < len(text) && isDigit(text[last]) {
			if end := readAddress4(text[last:]); end.text != nil {
				n = last + len(end.text)
			}
		}
	}
	for n > 2 {
		if bytes.Count(text[:n], []byte(":")) < 2 {
			return token{}
		}
		if parsed, err := netip.ParseAddr(string(text[:n])); err == nil && parsed.Is6() && ends(text, n) {
			return token{address, text[:n+maskLength(text[n:])]}
		}
		if text[n-1] != ':' {
			return token{}
		}
		n--
	}
	return token{}
}

// readHex reads a hexadecimal number with its mask.
func readHex(text []byte) token {
	n := 2 + run(text[2:], isHex)
	if n == 2 || !ends(text, n) {
		return token{word, text[:max(n, run(text, isWordPart))]}
	}
	if bytes.HasPrefix(text[n:], []byte("/0x")) {
		n += maskLength(text[n:])
	}
	return token{number, text[:n]}
}
