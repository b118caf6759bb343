package anonymise

import (
	"encoding/binary"
	"strings"
)

// name replaces each letter of a word by a letter, and each digit by a digit, so that the word keeps its length. The
// same beginning is always replaced by the same: a name that a program cut off is the beginning of the replaced name.
// By what a letter is replaced follows from the letters before it, of the first 64 of these.
func (k key) name(word string) string {
	const chained = 64
	replaced := make([]byte, len(word))
	chain := k.chain(ofName)
	for i := range len(word) {
		shift := int(binary.BigEndian.Uint32(chain.state))
		if rest := i - chained; rest >= 0 {
			if rest%len(chain.state) == 0 {
				chain.add(0)
			}
			shift = int(chain.state[rest%len(chain.state)])
		} else {
			chain.add(lower(word[i]))
		}
		replaced[i] = shifted(word[i], shift, i == 0)
	}
	return string(replaced)
}

// shifted replaces a letter by the one that is so many letters after it, and a digit likewise; by another one if it must change.
func shifted(char byte, shift int, change bool) byte {
	from, size := byte('a'), 26
	switch {
	case '0' <= char && char <= '9':
		from, size = '0', 10
	case 'A' <= char && char <= 'Z':
		from = 'A'
	case char >= 0x80: // a part of another letter
		char = 'a' + char%26
	}
	if change {
		shift = 1 + shift%(size-1)
	}
	return from + byte((int(char-from)+shift)%size)
}

// lower returns a letter as a small one.
func lower(char byte) byte {
	if 'A' <= char && char <= 'Z' {
		return char | 0x20
	}
	return char
}

// keptDigits is the number of digits of a UUID that stay: flows have them as cookies, and OVN orders rows by them. Of the UUID by
// which a chassis is known, none stay.
const keptDigits = 8

// uuid replaces a UUID, or the beginning of one.
func (r *renamer) uuid(text string) string {
	if r.found.isSystemID(text) {
		return r.key.uuid(text, 0)
	}
	return r.key.uuid(text, keptDigits)
}

// uuid replaces the hexadecimal digits after the first ones that are kept, whatever stands between them. The same beginning is
// always replaced by the same: names of devices end in the beginning of a UUID.
func (k key) uuid(text string, kept int) string {
	const digits = "0123456789abcdef"
	replaced, upper := []byte(text), strings.ContainsAny(text, "ABCDEF")
	var before []byte
	for i := range len(text) {
		value := strings.IndexByte(digits, text[i]|0x20)
		if value < 0 || text[i] == '-' || text[i] == '_' {
			continue
		}
		if n := len(before); n >= kept {
			shift := int(k.number(ofUUID, before))
			if n == kept {
				shift = 1 + shift%15
			}
			replaced[i] = digits[(value+shift)%16]
			if upper {
				replaced[i] = strings.ToUpper(string(replaced[i]))[0]
			}
		}
		before = append(before, digits[value])
	}
	return string(replaced)
}
