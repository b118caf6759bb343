package anonymise

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// class is what a field of a packet holds.
type class int

const (
	ofNumber class = iota
	ofRegister
	ofAddressRegister
	ofMAC
	ofAddress
)

// field is the header of an OXM, which says what value follows (openflow/nicira-ext.h and lib/meta-flow.h of Open vSwitch).
type field struct {
	class
	header int // bytes
	size   int // of the value
	masked bool
}

// fieldOf reads the header at the beginning of the bytes.
func fieldOf(data []byte) (f field, ok bool) {
	const plain, experimenter = 4, 8
	if len(data) < plain {
		return f, false
	}
	oxm, number := binary.BigEndian.Uint16(data), data[2]>>1
	f = field{ofNumber, plain, int(data[3]), data[2]&1 == 1}
	is := func(numbers ...byte) bool { return slices.Contains(numbers, number) }
	switch {
	case oxm == 0xffff:
		f.header, f.size = experimenter, f.size-4
	case oxm == 0x8000 && is(3, 4, 24, 25, 32, 33), oxm == 0 && is(1, 2), oxm == 1 && is(17, 18, 24, 25):
		f.class = ofMAC
	case oxm == 0x8000 && is(11, 12, 22, 23, 26, 27, 31), oxm == 0 && is(7, 8, 16, 17), oxm == 1 && is(19, 20, 23, 31, 32, 109, 110):
		f.class = ofAddress
	case oxm == 1 && number < 16:
		f.class = classOfRegister(int(number))
	case oxm == 1 && is(111, 112, 113, 114), oxm == 0x8001:
		f.class = ofRegister
	case oxm != 0x8000 && oxm > 1:
		return f, false
	}
	if f.masked {
		f.size /= 2
	}
	return f, f.size > 0 && len(data) >= f.header
}

// value replaces the value of a field in its place.
func (r *renamer) value(of class, value []byte) {
	switch to := []byte(nil); {
	case of == ofMAC && len(value) == 6:
		to, _ = r.macs(value)
		copy(value, to)
	case of == ofAddress && (len(value) == 4 || len(value) == 16):
		copy(value, r.octetsOfAddress(value))
	default:
		digits := hex.EncodeToString(value)
		padded := hex.EncodeToString(make([]byte, len(value))) + r.registersIn(r.macsIn(digits), of)
		to, _ = hex.DecodeString(padded[len(padded)-len(digits):])
		copy(value, to)
	}
}

// set replaces the value that follows its header.
func (r *renamer) set(data []byte) bool {
	f, ok := fieldOf(data)
	if !ok || len(data) < f.header+f.size {
		return false
	}
	r.value(f.class, data[f.header:f.header+f.size])
	return true
}

// Numbers of actions (openflow-1.5; lib/ofp-actions.c of Open vSwitch), and of properties of controller2.
const (
	setField     = 25
	experimenter = 0xffff
	regLoad      = 7
	noteAction   = 8
	regLoad2     = 33
	conntrack    = 35
	natAction    = 36
	controller2  = 37
	cloneAction  = 42
	userdataOf   = 3
)

// Actions that hold nothing but numbers of ports, tables, groups and fields.
var (
	plainActions = []uint16{0, 11, 12, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29}
	plainNicira  = []uint16{1, 2, 4, 5, 6, 9, 14, 15, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 32, 43, 44, 48, 49}
)

// actions replaces what a list of actions holds, each in its place. Those that are not understood become zeros.
func (r *renamer) actions(data []byte) ([]byte, bool) {
	const header, smallest = 4, 8
	for rest := data; len(rest) > 0; {
		if len(rest) < smallest {
			return nil, false
		}
		kind, length := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if length < smallest || length > len(rest) {
			return nil, false
		}
		body, ok := rest[header:length], true
		switch {
		case kind == setField:
			ok = r.set(body)
		case kind == experimenter:
			ok = r.nicira(body)
		default:
			ok = slices.Contains(plainActions, kind)
		}
		if !ok {
			r.leftOut++
			clear(body)
		}
		rest = rest[length:]
	}
	return data, true
}

// nicira replaces what the body of an action of Open vSwitch holds.
func (r *renamer) nicira(body []byte) bool {
	const vendor, start = 0x2320, 12 // what most begin with: the vendor, the number and padding
	if len(body) < start || binary.BigEndian.Uint32(body) != vendor {
		return false
	}
	switch number, rest := binary.BigEndian.Uint16(body[4:]), body[start:]; number {
	case regLoad:
		f, ok := fieldOf(body[8:])
		size := map[class]int{ofMAC: 6, ofNumber: 8, ofRegister: min(8, f.size), ofAddressRegister: 4, ofAddress: 4}[f.class]
		if !ok || len(rest) != 8 {
			return false
		}
		r.value(f.class, rest[8-size:])
	case regLoad2:
		return r.set(rest)
	case noteAction:
		copy(body[6:], r.note(slices.Clone(body[6:])))
	case controller2:
		return r.properties(rest)
	case conntrack:
		return len(body) >= 20 && isRead(r.actions(body[20:]))
	case cloneAction:
		return isRead(r.actions(rest))
	case natAction:
		return r.nat(body[10:])
	default:
		return slices.Contains(plainNicira, number)
	}
	return true
}

func isRead(_ []byte, ok bool) bool { return ok }

// properties replaces the userdata among the properties of an action.
func (r *renamer) properties(data []byte) bool {
	for len(data) >= 4 {
		kind, length := binary.BigEndian.Uint16(data), int(binary.BigEndian.Uint16(data[2:]))
		if length < 4 || length > len(data) {
			return false
		}
		if value := data[4:length]; kind == userdataOf {
			to := r.userdata(slices.Clone(value))
			if len(to) != len(value) {
				return false
			}
			copy(value, to)
		}
		data = data[min(len(data), (length+7)/8*8):]
	}
	return true
}

// nat replaces the addresses of a translation: the bits of range say which follow (struct nx_action_nat).
func (r *renamer) nat(data []byte) bool {
	if len(data) < 2 {
		return false
	}
	present, rest := binary.BigEndian.Uint16(data), data[2:]
	for bit, size := range []int{4, 4, 16, 16} {
		if present&(1<<bit) == 0 {
			continue
		}
		if len(rest) < size {
			return false
		}
		copy(rest, r.octetsOfAddress(rest[:size]))
		rest = rest[size:]
	}
	return true
}
