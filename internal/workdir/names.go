package workdir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxEncoded leaves room for a suffix below NAME_MAX (255).
const maxEncoded = 180

// EncodeName turns any name from outside (a bridge's, say) into one that is
// safe as a file name. Names of letters, digits and ._@+- stay as they are, all
// other bytes become %XX, and so does a leading dot or dash. Names too long for
// a file system end in a hash of the whole; all others DecodeName turns back.
func EncodeName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
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

// DecodeName is the inverse of EncodeName; ok is false for a name that
// EncodeName did not make or had to cut.
func DecodeName(encoded string) (name string, ok bool) {
	if encoded == "%" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '%' {
			b.WriteByte(encoded[i])
			continue
		}
		if i+3 > len(encoded) {
			return "", false
		}
		raw, err := hex.DecodeString(encoded[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.WriteByte(raw[0])
		i += 2
	}
	name = b.String()
	return name, EncodeName(name) == encoded // else two file names would stand for one bridge
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._@+-", c) >= 0
}
