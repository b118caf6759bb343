package openflow

import (
	"strings"
)

// Mask selects bits of a field.
type Mask struct{ bits word }

// MaskOf returns the name of a field in a match, from its name in any spelling, and the bits that a
// value selects: the bits of its mask, or all. ok is false for a value that it can't read.
func MaskOf(name, value string) (inMatch string, selected Mask, ok bool) {
	f := fieldNamed(name)
	if flags := flagsOf(f.match); flags != nil && value != "" && strings.IndexByte("+-", value[0]) >= 0 {
		_, mask, ok := readFlags(flags, value)
		return f.match, Mask{mask}, ok
	}
	_, text, masked := strings.Cut(value, "/")
	if !masked {
		return f.match, Mask{ones(width(f))}, true
	}
	mask, ok := f.parseMask(text)
	return f.match, Mask{mask}, ok
}

// AllBits returns the mask that selects a whole field.
func AllBits(name string) Mask { return Mask{ones(width(fieldNamed(name)))} }

// And returns the bits of a number that m selects.
func (m Mask) And(n uint64) Mask { return Mask{m.bits.and(word{0, n})} }

// Covers reports whether m selects all bits that other selects.
func (m Mask) Covers(other Mask) bool { return other.bits.andNot(m.bits) == word{} }

// IsEmpty reports whether m selects no bit.
func (m Mask) IsEmpty() bool { return m.bits == word{} }

// String returns the mask as a hexadecimal number.
func (m Mask) String() string { return m.bits.hex() }

// width returns the number of bits of a field, the largest for one whose width is not known.
func width(f field) int {
	if f.bits == 0 {
		return 128
	}
	return f.bits
}

// Fits reports whether a packet whose field has a value may match a criterion, "VALUE" or "VALUE/MASK".
// A text that can't be read fits.
func Fits(name, criterion, value string) bool {
	f := fieldNamed(name)
	if flags := flagsOf(f.match); flags != nil {
		return flagsFit(flags, criterion, value)
	}
	wanted, mask, ok := f.parseMasked(criterion)
	if !ok {
		return true
	}
	got, ok := f.parse(value)
	return !ok || got.and(mask) == wanted.and(mask)
}

// flagsOf returns the names of the flags of a field, the lowest bit first, nil for a field that has no
// flags (lib/packets.c of Open vSwitch).
func flagsOf(name string) []string {
	switch name {
	case "ct_state":
		return []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}
	case "tcp_flags":
		return []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"}
	}
	return nil
}

// readFlags reads flags that a match has to have and not to have: "+new-est".
func readFlags(names []string, text string) (value, mask word, ok bool) {
	for text != "" {
		end := strings.IndexAny(text[1:], "+-") + 1
		if end == 0 {
			end = len(text)
		}
		bit, known := flagNamed(names, text[1:end])
		if !known {
			return value, mask, false
		}
		mask = mask.or(bit)
		if text[0] == '+' {
			value = value.or(bit)
		}
		text = text[end:]
	}
	return value, mask, true
}

func flagNamed(names []string, name string) (bit word, known bool) {
	for i, known := range names {
		if known == name {
			return word{0, 1 << i}, true
		}
	}
	return word{}, false
}

// flagsFit works like Fits for a field with flags. The value is a list such as "new|trk", or a number.
func flagsFit(names []string, criterion, value string) bool {
	if criterion == "" || strings.IndexByte("+-", criterion[0]) < 0 {
		return true
	}
	wanted, mask, ok := readFlags(names, criterion)
	if !ok {
		return true
	}
	got, isNumber := parseNumber(value)
	if !isNumber {
		got = word{}
		for _, name := range strings.FieldsFunc(value, func(c rune) bool { return c == '|' || c == ',' }) {
			bit, known := flagNamed(names, name)
			if !known {
				return true
			}
			got = got.or(bit)
		}
	}
	return got.and(mask) == wanted
}
