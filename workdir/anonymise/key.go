package anonymise

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// key is the secret from which all replacements follow. Nothing in a renamed text tells it.
type key []byte

func newKey() key {
	k := make(key, 32)
	_, _ = rand.Read(k) // never fails: crypto/rand ends the program instead
	return k
}

// number returns a number that only the key and the parts determine.
func (k key) number(kind byte, parts ...[]byte) uint32 {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte{kind})
	for _, part := range parts {
		mac.Write(part)
	}
	return binary.BigEndian.Uint32(mac.Sum(nil))
}

// chain makes numbers that only the key and what was added so far determine.
type chain struct {
	mac   hash.Hash
	state []byte
}

func (k key) chain(kind byte) *chain {
	c := &chain{mac: hmac.New(sha256.New, k)}
	c.add(kind)
	return c
}

func (c *chain) add(b byte) {
	c.mac.Reset()
	c.mac.Write(c.state)
	c.mac.Write([]byte{b})
	c.state = c.mac.Sum(c.state[:0])
}

// Kinds of what the key makes numbers for.
const (
	ofName byte = iota
	ofUUID
	ofIPv4
	ofIPv6
	ofVendor
	ofDevice
	ofWide
)

// bits replaces the bits from first to end of a number (the first is 0) in a way that keeps common beginnings: two
// numbers with the same first n bits are replaced by two with the same first n bits, and different ones by different
// ones. fixed reports that the bit after a beginning of n bits is not changed.
func (k key) bits(kind byte, number []byte, first, end int, fixed func(beginning []byte, n int) bool) []byte {
	replaced := append([]byte(nil), number...)
	beginning := make([]byte, len(number))
	for i := range end {
		if i >= first && !fixed(beginning, i) && k.number(kind, []byte{byte(i)}, beginning)&1 == 1 {
			replaced[i/8] ^= 0x80 >> (i % 8)
		}
		beginning[i/8] |= number[i/8] & (0x80 >> (i % 8))
	}
	return replaced
}
