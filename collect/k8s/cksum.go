package k8s

import (
	"hash/crc32"
	"math/bits"
)

// cksum computes the output of POSIX cksum: the length, and a CRC-32 over the data and
// the length. hash/crc32 computes the same sum of bytes whose bits are in reverse
// order, complements it before and after, and returns it in reverse order.
type cksum struct {
	crc      uint32
	size     int64
	reversed []byte // a buffer of Write
}

// Write adds to the sum; it never fails.
func (c *cksum) Write(data []byte) (int, error) {
	c.reversed = c.reversed[:0]
	for _, char := range data {
		c.reversed = append(c.reversed, bits.Reverse8(char))
	}
	c.crc = ^crc32.Update(^c.crc, crc32.IEEETable, c.reversed)
	c.size += int64(len(data))
	return len(data), nil
}

// sum returns the CRC over the data and the length, its lowest byte first.
func (c *cksum) sum() uint32 {
	whole := *c
	for n := c.size; n > 0; n >>= 8 {
		whole.Write([]byte{byte(n)})
	}
	return ^bits.Reverse32(whole.crc)
}
