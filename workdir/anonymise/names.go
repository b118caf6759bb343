package anonymise

import "strings"

// name replaces each letter of a word by a letter, and each digit by a digit, so that the word keeps its length. The
// same beginning is always replaced by the same: a name that a program cut off is the beginning of the replaced name.
func (k key) name(word string) string {
	replaced := make([]byte, len(word))
	lower := strings.ToLower(word)
	for i := range len(word) {
		from, size := byte('a'), 26
		char := word[i]
		switch {
		case '0' <= char && char <= '9':
			from, size = '0', 10
		case 'A' <= char && char <= 'Z':
			from = 'A'
		case char >= 0x80: // a part of another letter
			char = 'a' + char%26
		}
		shift := int(k.number(ofName, []byte(lower[:i]))) // of equal beginnings the same: different letters stay different
		if i == 0 {
			shift = 1 + shift%(size-1)
		}
		replaced[i] = from + byte((int(char-from)+shift)%size)
	}
	return string(replaced)
}

// keptDigits is the number of digits of a UUID that stay: flows have them as cookies, and OVN orders rows by them.
const keptDigits = 8

// uuid replaces the hexadecimal digits after the first eight, whatever stands between them. The same beginning is
// always replaced by the same: names of devices end in the beginning of a UUID.
func (k key) uuid(text string) string {
	const digits = "0123456789abcdef"
	replaced := []byte(text)
	var before []byte
	for i := range len(text) {
		value := strings.IndexByte(digits, text[i]|0x20)
		if value < 0 || text[i] == '-' || text[i] == '_' {
			continue
		}
		if n := len(before); n >= keptDigits {
			shift := int(k.number(ofUUID, before))
			if n == keptDigits {
				shift = 1 + shift%15
			}
			replaced[i] = digits[(value+shift)%16]
			if text[i] >= 'A' && text[i] <= 'F' {
				replaced[i] = strings.ToUpper(string(replaced[i]))[0]
			}
		}
		before = append(before, digits[value])
	}
	return string(replaced)
}
