package openflow

import (
	"strconv"
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

// Bit reports whether a bit is selected; the lowest has the number 0.
func (m Mask) Bit(number int) bool { return m.bits.right(number).low&1 == 1 }

// Value is what a criterion of a match, or the value of set_field, says about a field.
type Value struct {
	Field    string // its name in a match
	Bits     int    // of the field, 128 if its width is not known
	Selected Mask   // the bits that it is about
	Set      Mask   // which of them are set
}

// ValueOf reads "VALUE", "VALUE/MASK", flags ("+new-est"), a reserved port ("LOCAL") or a kind of fragments ("not_later") for a field with a
// name in any spelling. ok is false for a text that it can't read.
func ValueOf(name, text string) (v Value, ok bool) {
	f := fieldNamed(name)
	v = Value{Field: f.match, Bits: width(f)}
	var value, mask word
	switch flags := flagsOf(f.match); {
	case flags != nil && text != "" && strings.IndexByte("+-", text[0]) >= 0:
		value, mask, ok = readFlags(flags, text)
	case f.match == "nw_frag" && fragments[text] != "":
		value, mask, ok = f.parseMasked(fragments[text])
	default:
		for number, reserved := range reservedPorts {
			if f.notation == portName && reserved == text {
				text = strconv.FormatUint(number, 10)
			}
		}
		value, mask, ok = f.parseMasked(text)
	}
	v.Selected, v.Set = Mask{mask}, Mask{value.and(mask)}
	return v, ok
}

// fragments are the words for kinds of fragments: bit 0 says that a packet is one, and bit 1 that it is not the first (ovs-fields(7), ip_frag).
var fragments = map[string]string{"no": "0/3", "yes": "1/1", "first": "1/3", "later": "3/3", "not_later": "0/2"}
