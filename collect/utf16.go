package collect

import (
	"bytes"

	"golang.org/x/text/encoding/unicode"
)

// isUTF16 reports whether a text begins with the byte order mark of UTF-16, in which PowerShell writes what a command prints.
func isUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff})
}

// decoded returns a text in UTF-8: one in UTF-16 is converted, in which what is not valid becomes U+FFFD.
func decoded(text []byte) []byte {
	if !isUTF16(text) {
		return text
	}
	plain, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(text)
	if err != nil {
		return nil
	}
	return plain
}
