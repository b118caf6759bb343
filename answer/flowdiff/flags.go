package flowdiff

import (
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// flags are the bits of registers that the actions of logical flows set, by the number of the register. OVN keeps each of its
// flags in one bit.
type flags map[int]uint32

var (
	// written matches what an action writes: a register, a bit or bits of it, and the value.
	written = lazyregexp.New(`\b(x{0,2})reg([0-9]+)(?:\[([0-9]+)(?:\.\.([0-9]+))?\])? = ([^;]*)`)
	// needsFlag matches a comparison that only a set flag fulfils.
	needsFlag = lazyregexp.New(`^reg([0-9]+)\[([0-9]+)\] == 1$`)
)

// add notes the bits that actions set. An action that writes 0 sets none.
func (f flags) add(actions string) {
	const size = 32 // of a register
	for _, parts := range written.FindAllStringSubmatch(actions, -1) {
		if parts[5] == "0" {
			continue
		}
		registers := 1 << len(parts[1]) // xreg0 is reg0 and reg1, and xxreg0 is reg0 to reg3 (ovs-fields(7))
		first, last := 0, registers*size-1
		if parts[3] != "" {
			first = number(parts[3])
			last = first
		}
		if parts[4] != "" {
			last = number(parts[4])
		}
		for bit := first; bit <= min(last, registers*size-1); bit++ {
			f[number(parts[2])*registers+registers-1-bit/size] |= 1 << (bit % size)
		}
	}
}

// neverMatch reports whether a match needs a flag that no flow sets. All registers are 0 when a packet enters a datapath.
func (f flags) neverMatch(match string) bool {
	if strings.Contains(match, "||") {
		return false
	}
	for part := range strings.SplitSeq(match, " && ") {
		flag := needsFlag.FindStringSubmatch(strings.Trim(part, "() "))
		if flag != nil && f[number(flag[1])]&(1<<min(number(flag[2]), 31)) == 0 {
			return true
		}
	}
	return false
}

// number returns the value of digits, or the largest int if their value is larger.
func number(digits string) int {
	n, _ := strconv.Atoi(digits) // an error gives the largest value
	return n
}
