package webpage

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Data returns a value as JSON that is compressed (RFC 1951) and in base64: the content of an element that a
// script reads. Characters that can't be seen, or that change the direction of a text, are written as their
// number, so that the script may show each text as it is.
func Data(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(visible(text)); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// visible returns JSON in which texts have only characters that can be seen, and line feeds and tabs.
func visible(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if code, ok := escaped(text); ok {
			if unicode.IsPrint(code) {
				out = append(out, text[:6]...)
			} else {
				out = fmt.Appendf(out, `\\x%02x`, code)
			}
			text = text[6:]
			continue
		}
		if text[0] == '\\' {
			out, text = appendShort(out, text[1]), text[2:]
			continue
		}
		char, size := utf8.DecodeRune(text)
		if char < utf8.RuneSelf && char != 0x7f || unicode.IsPrint(char) {
			out = append(out, text[:size]...)
		} else {
			out = fmt.Appendf(out, `\\x%02x`, char)
		}
		text = text[size:]
	}
	return out
}

// appendShort adds a character that JSON writes as a letter behind a backslash (RFC 8259, 7).
func appendShort(out []byte, letter byte) []byte {
	unseen := map[byte]rune{'b': '\b', 'f': '\f', 'r': '\r'}
	if code, ok := unseen[letter]; ok {
		return fmt.Appendf(out, `\\x%02x`, code)
	}
	return append(out, '\\', letter)
}

// escaped returns the character that JSON begins with, if that is written as its number.
func escaped(text []byte) (code rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	_, err := fmt.Sscanf(string(text[2:6]), "%04x", &code)
	return code, err == nil
}
