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
	var b strings.Builder
	for i, c := range []byte(name) {
		if plainByte(c) && (i > 0 || (c != '.' && c != '-')) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 {
		return "%"
	}
	if b.Len() <= maxEncoded {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return b.String()[:maxEncoded-20] + "%~" + hex.EncodeToString(sum[:8])
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

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._@+-", c) >= 0
}
