package workdir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// maxEncoded leaves room for a suffix below NAME_MAX (255).
const maxEncoded = 180

// EncodeName returns a safe file name for a name from outside, such as a bridge's.
// Letters, digits and ._@+- stay as they are; every other byte, and a leading dot
// or dash, becomes %XX. A name that is too long for a file system ends in a hash of
// the whole name. DecodeName recovers all other names.
func EncodeName(name string) string {
	var text strings.Builder
	for i, char := range []byte(name) {
		if plainByte(char) && (i > 0 || (char != '.' && char != '-')) {
			text.WriteByte(char)
		} else {
			fmt.Fprintf(&text, "%%%02X", char)
		}
	}
	if text.Len() == 0 {
		return "%"
	}
	if text.Len() <= maxEncoded {
		return text.String()
	}
	sum := sha256.Sum256([]byte(name))
	return text.String()[:maxEncoded-20] + "%~" + hex.EncodeToString(sum[:8])
}

// DecodeName reverses EncodeName. ok is false for a name that EncodeName does not
// return, or that it shortened.
func DecodeName(encoded string) (name string, ok bool) {
	if encoded == "%" {
		return "", true
	}
	name, err := url.PathUnescape(encoded)
	return name, err == nil && EncodeName(name) == encoded // one bridge has one file name only
}

func plainByte(char byte) bool {
	return char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9' || strings.IndexByte("._@+-", char) >= 0
}
