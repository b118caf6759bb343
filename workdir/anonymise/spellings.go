package anonymise

import (
	"bytes"
	"net/netip"
	"strconv"
)

// startOfUUID returns the length of the first ten digits of a UUID, or of more groups of them, at the beginning of a text;
// 0 if it has none.
func startOfUUID(text []byte) int {
	if run(text, isHex) != keptDigits {
		return 0
	}
	n := keptDigits
	for _, digits := range []int{4, 4, 4, 12} {
		if n >= len(text) || text[n] != '-' && text[n] != '_' || text[n] != text[keptDigits] {
			break
		}
		group := run(text[n+1:], isHex)
		if group < 2 || group > digits || !ends(text, n+1+group) {
			break
		}
		if n += 1 + group; group < digits {
			break
		}
	}
	if n == keptDigits {
		return 0
	}
	return n
}

// readUUID reads a UUID with dashes or underscores, or its beginning.
func readUUID(text []byte) token {
	const length = 36
	n := startOfUUID(text)
	switch {
	case n == length:
		return token{kind: uuid, text: text[:n]}
	case n > 0 && (len(text) == n || text[n] != '-' || !ends(text, n)):
		return token{kind: uuidStart, text: text[:n]}
	}
	return token{}
}

// groups reads groups of hexadecimal digits between equal separators, and returns the number of groups, and the lengths
// of the shortest, the longest and all of them.
func groups(text []byte, most int) (n, shortest, longest, length int) {
	for {
		digits := run(text[length:min(len(text), length+5)], isHex)
		if digits == 0 || digits > 4 {
			return 0, 0, 0, 0
		}
		if n++; n == 1 || digits < shortest {
			shortest = digits
		}
		longest = max(longest, digits)
		length += digits
		if length+1 >= len(text) || bytes.IndexByte([]byte(":-_."), text[length]) < 0 || n > 1 && text[length] != text[length-digits-1] ||
			!isHex(text[length+1]) || n == most {
			return n, shortest, longest, length
		}
		length++
	}
}

// readMAC reads a MAC address: 52:54:11:22:33:90, 52-54-11-22-33-90, 52_54_11_22_33_90, without leading zeros as BSD prints it
// (0:16:3e:19:ce:1b), or of three groups (5254.1122.3390).
func readMAC(text []byte) token {
	n, shortest, longest, length := groups(text, 7)
	separator := byte(0)
	if n > 1 {
		separator = text[run(text, isHex)]
	}
	isMAC := n == 6 && longest <= 2 && (separator == ':' || shortest == 2 && separator != '.') ||
		n == 3 && shortest == 4 && longest == 4 && (separator == '.' || separator == '-')
	if !isMAC || !ends(text, length) {
		return token{}
	}
	return token{kind: mac, text: text[:length]}
}

// readWide reads eight or more bytes between colons or dashes.
func readWide(text []byte) token {
	const fewest, most = 8, 64
	n, shortest, longest, length := groups(text, most)
	if n < fewest || shortest != 2 || longest != 2 || text[2] != ':' && text[2] != '-' || !ends(text, length) {
		return token{}
	}
	return token{kind: wide, text: text[:length]}
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
	return token{kind: vendor, text: text[:length]}
}

// octetsOf4 reads up to four decimal numbers between equal separators: the octets of an IPv4 address. It returns the lengths of the
// text up to the end of each.
func octetsOf4(text []byte) (lengths []int) {
	n := 0
	for part := range 4 {
		if part > 0 {
			if n+1 >= len(text) || bytes.IndexByte([]byte(".-_"), text[n]) < 0 || part > 1 && text[n] != text[lengths[0]] || !isDigit(text[n+1]) {
				break
			}
			n++
		}
		digits := run(text[n:min(len(text), n+6)], isDigit)
		value, err := strconv.Atoi(string(text[n : n+digits]))
		if err != nil || value > 255 || digits > 1 && text[n] == '0' {
			break
		}
		n += digits
		lengths = append(lengths, n)
	}
	return lengths
}

// readAddress4 reads an IPv4 address, with dots, or with dashes or underscores as parts of names have them. After a dot, more
// numbers may follow, as tcpdump prints a port, or a star in the place of the last octets.
func readAddress4(text []byte) token {
	if !isDigit(text[0]) {
		return token{}
	}
	lengths := octetsOf4(text)
	switch len(lengths) {
	case 2, 3:
		n := lengths[len(lengths)-1]
		star := text[n:]
		isX := len(lengths) == 3 && bytes.HasPrefix(star, []byte(".x")) && ends(star, 1+run(star[1:], func(c byte) bool { return c == 'x' }))
		if text[lengths[0]] == '.' && (isX || bytes.HasPrefix(star, []byte(".*"))) {
			return token{kind: wildcard, text: text[:n]}
		}
		return token{}
	case 4:
	default:
		return token{}
	}
	n := lengths[3]
	if !ends(text, n) {
		return token{}
	}
	if text[lengths[0]] != '.' {
		return token{kind: address, text: text[:n]}
	}
	if n+1 < len(text) && text[n] == '.' && isDigit(text[n+1]) {
		all := bytes.TrimRight(text[:run(text, func(c byte) bool { return isDigit(c) || c == '.' })], ".")
		if !ends(text, len(all)) {
			return token{}
		}
		return token{kind: numbers, text: all}
	}
	return token{kind: address, text: text[:n+maskLength(text[n:])]}
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
	if text[0] == ':' && (len(text) < 3 || text[1] != ':' || text[2] == ':') {
		return token{}
	}
	n := run(text[:min(len(text), longest+1)], func(c byte) bool { return isHex(c) || c == ':' })
	if n > longest {
		return token{}
	}
	if n < len(text) && text[n] == '.' && bytes.Count(text[:n], []byte(":")) > 1 { // it ends as an IPv4 address
		if last := bytes.LastIndexByte(text[:n], ':') + 1; last < len(text) && isDigit(text[last]) {
			if end := octetsOf4(text[last:]); len(end) >= 4 {
				n = last + end[3]
			}
		}
	}
	for n > 2 {
		if bytes.Count(text[:n], []byte(":")) < 2 {
			return token{}
		}
		if parsed, err := netip.ParseAddr(string(text[:n])); err == nil && parsed.Is6() && ends(text, n) {
			return token{kind: address, text: text[:n+maskLength(text[n:])]}
		}
		if text[n-1] != ':' {
			return token{}
		}
		n--
	}
	return token{}
}

// The ends of the names by which addresses are looked up (RFC 1035, RFC 3596).
const (
	ofReversed4 = ".in-addr.arpa"
	ofReversed6 = ".ip6.arpa"
)

// readReversed reads the octets, or the hexadecimal digits, of an address before .in-addr.arpa or .ip6.arpa.
func readReversed(text []byte) token {
	const longest = 63 // of 32 digits with dots
	n := run(text[:min(len(text), longest+1)], func(c byte) bool { return isHex(c) || c == '.' })
	for n > 0 && text[n-1] != '.' { // of .in-addr, the i is no digit, but the a of .a is
		n--
	}
	n--
	if n <= 0 {
		return token{}
	}
	parts := bytes.Split(text[:n], []byte("."))
	hasSuffix := func(suffix string) bool {
		return len(text) >= n+len(suffix) && bytes.EqualFold(text[n:n+len(suffix)], []byte(suffix)) && ends(text, n+len(suffix))
	}
	switch {
	case hasSuffix(ofReversed4) && len(parts) <= 4:
		for _, part := range parts {
			if value, err := strconv.Atoi(string(part)); err != nil || value > 255 {
				return token{}
			}
		}
	case hasSuffix(ofReversed6) && len(parts) <= 32:
		for _, part := range parts {
			if len(part) != 1 {
				return token{}
			}
		}
	default:
		return token{}
	}
	return token{kind: reversed, text: text[:n]}
}
