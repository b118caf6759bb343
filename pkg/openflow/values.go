package openflow

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// word is a value of up to 128 bits.
type word struct{ high, low uint64 }

// ones returns a word whose n lowest bits are set.
func ones(n int) word {
	switch {
	case n >= 128:
		return word{^uint64(0), ^uint64(0)}
	case n > 64:
		return word{1<<(n-64) - 1, ^uint64(0)}
	case n == 64:
		return word{0, ^uint64(0)}
	}
	return word{0, 1<<n - 1}
}

func (w word) and(x word) word    { return word{w.high & x.high, w.low & x.low} }
func (w word) or(x word) word     { return word{w.high | x.high, w.low | x.low} }
func (w word) andNot(x word) word { return word{w.high &^ x.high, w.low &^ x.low} }

func (w word) left(n int) word {
	if n >= 64 {
		return word{w.low << (n - 64), 0}
	}
	return word{w.high<<n | w.low>>(64-n), w.low << n}
}

func (w word) right(n int) word {
	if n >= 64 {
		return word{0, w.high >> (n - 64)}
	}
	return word{w.high >> n, w.low>>n | w.high<<(64-n)}
}

// length returns the number of bits up to the highest one that is set.
func (w word) length() int {
	if w.high != 0 {
		return 64 + bits.Len64(w.high)
	}
	return bits.Len64(w.low)
}

func (w word) hex() string {
	if w.high != 0 {
		return fmt.Sprintf("0x%x%016x", w.high, w.low)
	}
	return "0x" + strconv.FormatUint(w.low, 16)
}

// parseNumber reads a decimal or hexadecimal number.
func parseNumber(text string) (w word, ok bool) {
	digits, isHex := strings.CutPrefix(text, "0x")
	if isHex && len(digits) > 16 && len(digits) <= 32 {
		high, err1 := strconv.ParseUint(digits[:len(digits)-16], 16, 64)
		low, err2 := strconv.ParseUint(digits[len(digits)-16:], 16, 64)
		return word{high, low}, err1 == nil && err2 == nil
	}
	base := 10
	if isHex {
		base = 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return word{0, n}, err == nil
}

// parse reads a value or a mask of the field in any notation.
func (f field) parse(text string) (word, bool) {
	switch {
	case strings.Contains(text, ":") && f.notation == macAddress:
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 {
			return word{}, false
		}
		return word{0, uint64(binary.BigEndian.Uint16(mac))<<32 | uint64(binary.BigEndian.Uint32(mac[2:]))}, true
	case f.notation == ipAddress && strings.ContainsAny(text, ".:"):
		a, err := netip.ParseAddr(text)
		if err != nil || a.BitLen() != f.bits {
			return word{}, false
		}
		if a.Is4() {
			b := a.As4()
			return word{0, uint64(binary.BigEndian.Uint32(b[:]))}, true
		}
		b := a.As16()
		return word{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, true
	case f.name == "tun_flags" && text == "oam":
		return word{0, 1}, true
	}
	return parseNumber(text)
}

// parseMask reads a mask; one of an address may be the length of a prefix.
func (f field) parseMask(text string) (word, bool) {
	if n, err := strconv.Atoi(text); f.notation == ipAddress && err == nil && n >= 0 && n <= f.bits {
		return ones(f.bits).andNot(ones(f.bits - n)), true
	}
	return f.parse(text)
}

// format writes a value of the field.
func (f field) format(w word) string {
	switch {
	case f.notation == decimal && w.high == 0:
		return strconv.FormatUint(w.low, 10)
	case f.notation == macAddress:
		return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, w.low)[2:]).String()
	case f.notation == ipAddress && f.bits == 32:
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(w.low)))).String()
	case f.notation == ipAddress:
		return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, w.high), w.low))).String()
	case f.notation == portName:
		return formatPort(w.low)
	case f.name == "tun_flags" && w == word{0, 1}:
		return "oam"
	}
	return w.hex()
}

// formatMasked writes a value and its mask, without a mask that selects the whole field.
func (f field) formatMasked(value, mask word) string {
	switch full := ones(f.bits); {
	case f.bits > 0 && mask == full:
		return f.format(value)
	case f.notation == ipAddress:
		if n := full.andNot(mask).length(); mask == full.andNot(ones(n)) {
			return f.format(value) + "/" + strconv.Itoa(f.bits-n)
		}
		return f.format(value) + "/" + f.format(mask)
	case f.notation == macAddress:
		return f.format(value) + "/" + f.format(mask)
	}
	return value.hex() + "/" + mask.hex()
}

// reservedPorts are the ports that OpenFlow reserves, by their numbers in OpenFlow 1.0.
var reservedPorts = map[uint64]string{
	0xfff8: "IN_PORT", 0xfff9: "TABLE", 0xfffa: "NORMAL", 0xfffb: "FLOOD", 0xfffc: "ALL", 0xfffd: "CONTROLLER", PortLocal: "LOCAL", 0xffff: "ANY",
}

func formatPort(n uint64) string {
	if name, ok := reservedPorts[n]; ok {
		return name
	}
	return strconv.FormatUint(n, 10)
}
