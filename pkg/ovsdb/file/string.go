package file

import "bytes"

// stringReader reads the strings of a JSON text that comes in pieces, and keeps the latest
// key.
type stringReader struct {
	quoted  bool   // the next byte is in a string
	escaped bool   // a backslash precedes it
	inKey   bool   // the string is a key
	key     []byte // the latest key, up to maxKey bytes
}

// maxKey is longer than the name of any table; the rest of a longer key is not kept.
const maxKey = 200

// readString reads a string from p[i] on, and returns the index of the last byte
// that it read.
func (r *stringReader) readString(data []byte, i int) int {
	start := i
	for i < len(data) {
		if r.escaped {
			r.escaped = false
			i++
			continue
		}
		end := bytes.IndexByte(data[i:], '"')
		if end < 0 {
			end = len(data) - i
		}
		if escape := bytes.IndexByte(data[i:i+end], '\\'); escape >= 0 {
			r.escaped = true
			i += escape + 1
			continue
		}
		if i += end; i < len(data) {
			r.keepKey(data[start:i])
			r.quoted, r.inKey = false, false
			return i
		}
	}
	r.keepKey(data[start:])
	return i
}

func (r *stringReader) keepKey(text []byte) {
	if r.inKey {
		r.key = append(r.key, text[:min(len(text), maxKey-len(r.key))]...)
	}
}
