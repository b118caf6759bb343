package daemonlog

import "bytes"

// Folded appends to key the pattern of a message: the message with # for each number, address and UUID in
// it. Messages with the same pattern say the same of other things. A name keeps its digits: vm-17.
func Folded(key, text []byte) []byte {
	for len(text) > 0 {
		n := wordLength(text)
		switch {
		case n == 0:
			if !joins(key, text) {
				key = append(key, text[0])
			}
			text = text[1:]
		case endsIn(key, '#'): // joins has left out what stands between two values
			text = text[n:]
		case isValue(text[:n], endsIn(key, ':') || n < len(text) && text[n] == ':'):
			key, text = append(key, '#'), text[n:]
		default:
			key, text = append(key, text[:n]...), text[n:]
		}
	}
	return key
}

// wordLength returns the length of the word at the beginning of a text, 0 for a byte that is in no word.
func wordLength(text []byte) int {
	for i, c := range text {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '_' && c != '-' && c < 0x80 {
			return i
		}
	}
	return len(text)
}

// joins reports whether a byte stands within an address: between two values.
func joins(key, text []byte) bool {
	if !endsIn(key, '#') || len(text) < 2 || bytes.IndexByte([]byte(".:/"), text[0]) < 0 {
		return false
	}
	if text[1] == ':' { // as in fd00::1
		return true
	}
	n := wordLength(text[1:])
	return n > 0 && (isValue(text[1:1+n], text[0] == ':') || text[0] == ':' && isHex(text[1:1+n]))
}

func endsIn(text []byte, c byte) bool { return len(text) > 0 && text[len(text)-1] == c }

// isHex reports whether a word may be a part of a MAC or IPv6 address.
func isHex(word []byte) bool {
	return len(word) <= 4 && len(bytes.Trim(word, "0123456789abcdefABCDEF")) == 0
}

// isValue reports whether a word is a number, also with a unit, or a part of an address, or a UUID.
// colon reports that a colon stands beside it.
func isValue(word []byte, colon bool) bool {
	digits, hex, groups := 0, 0, 0
	for _, c := range word {
		switch {
		case isDigit(c):
			digits++
			hex++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			hex++
		case c == '-':
			groups++
		}
	}
	switch {
	case digits == 0:
		return false
	case digits == len(word), len(word) == 36 && groups == 4 && hex == 32:
		return true
	case bytes.HasPrefix(word, []byte("0x")):
		return hex == len(word)-1
	case hex == len(word):
		return len(word) >= 8 || colon && len(word) <= 4
	}
	return isUnit(bytes.TrimLeft(word, "0123456789"))
}

// isUnit reports whether a word is a unit that daemons write behind a number without a blank.
func isUnit(word []byte) bool {
	switch string(word) {
	case "ms", "us", "s", "kB", "MB", "GB", "B", "K", "M", "G", "x":
		return true
	}
	return false
}
