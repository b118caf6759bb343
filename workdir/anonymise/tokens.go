package anonymise

import (
	"bytes"
)

// kind is what a token of a text is.
type kind int

const (
	other     kind = iota // stays
	escape                // stays, and ends a word: \n, %3D, the colour of a terminal
	word                  // letters and digits
	uuid                  // also without separators, or with underscores
	uuidStart             // the first ten digits of a UUID, or more of them
	mac                   // of six bytes, in any of its forms
	wide                  // of eight or more bytes, of two digits each, between colons or dashes: EUI-64, WWN, datapath ID
	vendor                // the first half of a MAC address, with colons
	address               // perhaps with a mask
	numbers               // five or more decimal numbers between dots: an address and a port, or an object identifier that holds one
	wildcard              // the first octets of an IPv4 address before .* or .x
	reversed              // an address as in-addr.arpa and ip6.arpa have it
	encoded               // a MAC address, a UUID or an address with percent-encoded separators (RFC 3986)
	number                // 0x..., perhaps with a mask
	octets                // of userdata and note of an OpenFlow action: two digits each, between dots
)

// token is a part of a text.
type token struct {
	kind  kind
	text  []byte
	field []byte // of a number: the field into which an action writes it; nil for none
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isHex(c byte) bool      { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isLetter(c byte) bool   { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isWordPart(c byte) bool { return isDigit(c) || isLetter(c) || c >= 0x80 }

// tokens calls use with each part of a text, in their order, and with what is before it. The parts together are the
// text.
func tokens(text []byte, use func(before []byte, t token)) {
	starts := true // whether no word goes on here
	for i := 0; i < len(text); {
		found := next(text, i, starts)
		use(text[:i], found)
		i += len(found.text)
		starts = found.kind == escape || !isWordPart(text[i-1])
	}
}

// readers read what begins at the beginning of a word.
var readers = []func([]byte) token{readUUID, readMAC, readWide, readReversed, readAddress4, readAddress6, readVendor}

// next returns the token that begins at an offset.
func next(text []byte, i int, starts bool) token {
	rest := text[i:]
	if action := text[:i]; bytes.HasSuffix(action, []byte("userdata=")) || bytes.HasSuffix(action, []byte("note:")) {
		if n := octetsLength(rest); n > 0 {
			return token{kind: octets, text: rest[:n]}
		}
	}
	if starts && (isHex(rest[0]) || rest[0] == ':') {
		if found := readPlain(rest); found.text != nil {
			return found
		}
		if found := readEncoded(rest); found.text != nil {
			return found
		}
	}
	if n := escapeLength(rest); n > 0 {
		return token{kind: escape, text: rest[:n]}
	}
	if !starts { // after the letters that readWord has split off
		if n := startOfUUID(rest); n > 0 {
			return token{kind: uuidStart, text: rest[:n]}
		}
		if isLetter(text[i-1]) {
			if found := readAddress4(rest); found.text != nil {
				return found
			}
		}
	}
	if starts && bytes.HasPrefix(rest, []byte("0x")) {
		return readHex(rest)
	}
	if n := run(rest, isWordPart); n > 0 {
		return readWord(rest, n)
	}
	n := 1
	for n < len(rest) && !isWordPart(rest[n]) && bytes.IndexByte([]byte(`:\%[`), rest[n]) < 0 {
		n++
	}
	return token{kind: other, text: rest[:n]}
}

func readPlain(text []byte) token {
	for _, read := range readers {
		if found := read(text); found.text != nil {
			return found
		}
	}
	return token{}
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

// octetsLength returns the length of the bytes at the beginning of a text, two digits each, between dots.
func octetsLength(text []byte) (n int) {
	for len(text) >= n+2 && isHex(text[n]) && isHex(text[n+1]) {
		if n += 2; n == len(text) || text[n] != '.' {
			break
		}
		n++
	}
	if n > 0 && text[n-1] == '.' {
		n--
	}
	if !ends(text, n) {
		return 0
	}
	return n
}

// escapeLength returns the length of the escape sequence at the beginning of a text: of a string of C or JSON, of a URL
// (RFC 3986, section 2.1), or of a terminal's colour (ECMA-48, SGR) without the ESC, however that is written.
func escapeLength(text []byte) int {
	hexAfter := func(prefix, digits int) int {
		if len(text) >= prefix+digits && run(text[prefix:prefix+digits], isHex) == digits {
			return prefix + digits
		}
		return 0
	}
	switch {
	case text[0] == '%':
		return hexAfter(1, 2)
	case text[0] == '[':
		if n := 1 + run(text[1:], func(c byte) bool { return isDigit(c) || c == ';' }); n < len(text) && text[n] == 'm' {
			return n + 1
		}
	case text[0] == '\\' && len(text) > 1:
		switch c := text[1]; {
		case c == 'x':
			return hexAfter(2, 2)
		case c == 'u':
			return hexAfter(2, 4)
		case c == '0' && len(text) > 3 && isDigit(text[2]) && isDigit(text[3]):
			return 4
		case bytes.IndexByte([]byte("abefnrtv0"), c) >= 0:
			return 2
		}
	}
	return 0
}

// readWord returns a word of n bytes. One of 32 hexadecimal digits is a UUID; one that goes on as
// tap01234567-89 holds the beginning of one, and one that goes on as ip203-0-113-85 an address, which are the next tokens.
func readWord(text []byte, n int) token {
	const compact = 32
	if n == compact && run(text, isHex) == n {
		return token{kind: uuid, text: text[:n]}
	}
	letters := run(text[:n], func(c byte) bool { return !isDigit(c) })
	if before := n - keptDigits; before > 0 && before <= 3 && letters >= before && startOfUUID(text[before:]) > 0 {
		return token{kind: word, text: text[:before]}
	}
	if isVersion := letters == 1 && text[0]|0x20 == 'v'; letters > 0 && letters < n && n-letters <= 3 && !isVersion && isLetter(text[letters-1]) &&
		readAddress4(text[letters:]).text != nil {
		return token{kind: word, text: text[:letters]}
	}
	return token{kind: word, text: text[:n]}
}

// readHex reads a hexadecimal number with its mask.
func readHex(text []byte) token {
	n := 2 + run(text[2:], isHex)
	if n == 2 || !ends(text, n) {
		return token{kind: word, text: text[:max(n, run(text, isWordPart))]}
	}
	if bytes.HasPrefix(text[n:], []byte("/0x")) {
		n += maskLength(text[n:])
	}
	return token{number, text[:n], fieldAfter(text[n:])}
}

// fieldAfter returns the name of the field to which an arrow at the beginning of a text points, as in
// load:0x1->NXM_NX_REG0[]; nil for none.
func fieldAfter(text []byte) []byte {
	name, isArrow := bytes.CutPrefix(text, []byte("->"))
	if !isArrow {
		return nil
	}
	return name[:run(name, isNamePart)]
}

// fieldBefore returns the name of the field that a match or an action sets to what follows a text, as in reg0=; empty for none.
func fieldBefore(text []byte) []byte {
	text = bytes.TrimSuffix(text, []byte("="))
	n := len(text)
	for n > 0 && isNamePart(text[n-1]) {
		n--
	}
	return text[n:]
}

func isNamePart(c byte) bool { return c == '_' || isWordPart(c) }

// readEncoded reads what has percent-encoded separators.
func readEncoded(text []byte) token {
	const longest = 200
	n := run(text[:min(len(text), longest)], func(c byte) bool { return isHex(c) || bytes.IndexByte([]byte("%:.-_/"), c) >= 0 })
	if bytes.IndexByte(text[:n], '%') < 0 {
		return token{}
	}
	plain, ends := decoded(text[:min(len(text), n+1)])
	found := readPlain(plain)
	if found.text == nil || ends[len(found.text)-1] == len(found.text) { // nothing of it is encoded
		return token{}
	}
	return token{kind: encoded, text: text[:ends[len(found.text)-1]]}
}

// decoded returns a text with the percent-encoded bytes decoded, and for each byte where it ends in the text.
func decoded(text []byte) (plain []byte, ends []int) {
	for i := 0; i < len(text); {
		c, n := text[i], 1
		if c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			c, n = digit(text[i+1])<<4|digit(text[i+2]), 3
		}
		i += n
		plain, ends = append(plain, c), append(ends, i)
	}
	return plain, ends
}
