package k8s

import "sync"

// cksum computes the output of POSIX cksum: the length, and a CRC-32 over the data
// and the length. Unlike those of hash/crc32, the CRC is not reflected.
type cksum struct {
	crc  uint32
	size int64
}

// polynomial is that of POSIX and Ethernet, the highest power first.
const polynomial = 0x04c11db7

// table returns the remainder of each byte.
var table = sync.OnceValue(func() *[256]uint32 {
	var t [256]uint32
	for i := range t {
		crc := uint32(i) << 24
		for range 8 {
			if crc&(1<<31) != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return &t
})

// Write adds to the sum; it never fails.
func (c *cksum) Write(p []byte) (int, error) {
	t, crc := table(), c.crc
	for _, b := range p {
		crc = crc<<8 ^ t[byte(crc>>24)^b]
	}
	c.crc = crc
	c.size += int64(len(p))
	return len(p), nil
}

// sum returns the CRC over the data and the length, its lowest byte first.
func (c *cksum) sum() uint32 {
	whole := *c
	for n := c.size; n > 0; n >>= 8 {
		whole.Write([]byte{byte(n)})
	}
	return ^whole.crc
}
