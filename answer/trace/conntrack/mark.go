package conntrack

import (
	"math/big"
	"strconv"
	"strings"
)

// maskedMark returns a mark after a change VALUE/MASK; "" changes nothing.
func maskedMark(old uint32, change string) uint32 {
	value, mask, masked := strings.Cut(change, "/")
	bits, err := strconv.ParseUint(value, 0, 32)
	if err != nil {
		return old
	}
	selected := uint64(0xffffffff)
	if masked {
		if selected, err = strconv.ParseUint(mask, 0, 32); err != nil {
			return old
		}
	}
	return old&^uint32(selected) | uint32(bits&selected)
}

// maskedLabel works like maskedMark for the 128 bits of a label.
func maskedLabel(old, change string) string {
	value, mask, masked := strings.Cut(change, "/")
	bits, ok := new(big.Int).SetString(value, 0)
	if !ok {
		return old
	}
	before, ok := new(big.Int).SetString(old, 0)
	if !ok {
		before = new(big.Int)
	}
	selected := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	if masked {
		if selected, ok = new(big.Int).SetString(mask, 0); !ok {
			return old
		}
	}
	merged := new(big.Int).Or(new(big.Int).AndNot(before, selected), new(big.Int).And(bits, selected))
	if merged.Sign() == 0 {
		return ""
	}
	return "0x" + merged.Text(16)
}
