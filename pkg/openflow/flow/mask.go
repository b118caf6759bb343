package flow

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// SetMasked sets the bits of a field that a mask selects: value is "VALUE" or
// "VALUE/MASK", as datapath actions print them. MAC addresses, IP addresses and numbers
// keep the notation of the text.
func (p *Packet) SetMasked(name, value string) error {
	bits, mask, masked := strings.Cut(value, "/")
	if !masked {
		p.Set(name, bits)
		return nil
	}
	old := p.Get(name)
	merged, err := merge(old, bits, mask)
	if err != nil {
		return fmt.Errorf("setting %s to %q: %w", name, value, err)
	}
	p.Set(name, merged)
	return nil
}

// merge returns a value after the bits that a mask selects were set.
func merge(old, bits, mask string) (string, error) {
	if strings.Count(bits, ":") == 5 && len(bits) == 17 {
		return mergeMAC(old, bits, mask)
	}
	if to, err := netip.ParseAddr(bits); err == nil {
		return mergeAddress(old, to, mask)
	}
	from, _ := strconv.ParseUint(old, 0, 64) // a field that the packet lacks is 0
	to, err := strconv.ParseUint(bits, 0, 64)
	if err != nil {
		return "", err
	}
	selected, err := strconv.ParseUint(mask, 0, 64)
	if err != nil {
		return "", err
	}
	n := from&^selected | to&selected
	if strings.HasPrefix(old, "0x") {
		return fmt.Sprintf("%#x", n), nil
	}
	return strconv.FormatUint(n, 10), nil
}

// mergeMAC works like merge for MAC addresses.
func mergeMAC(old, bits, mask string) (string, error) {
	var parts [3][]byte
	for i, text := range []string{old, bits, mask} {
		raw, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		if err != nil || len(raw) != 6 {
			return "", fmt.Errorf("%q is not a MAC address", text)
		}
		parts[i] = raw
	}
	blend(parts[0], parts[1], parts[2])
	var out []string
	for _, b := range parts[0] {
		out = append(out, fmt.Sprintf("%02x", b))
	}
	return strings.Join(out, ":"), nil
}

// mergeAddress works like merge for IP addresses.
func mergeAddress(old string, to netip.Addr, mask string) (string, error) {
	from, err := netip.ParseAddr(old)
	if err != nil {
		return "", err
	}
	selected, err := netip.ParseAddr(mask)
	if length, lengthErr := strconv.Atoi(mask); err != nil && lengthErr == nil {
		selected, err = prefixMask(to, length)
	}
	if err != nil {
		return "", err
	}
	oldBytes, newBytes, maskBytes := from.AsSlice(), to.AsSlice(), selected.AsSlice()
	if len(oldBytes) != len(newBytes) || len(newBytes) != len(maskBytes) {
		return "", fmt.Errorf("%s, %s and %s are addresses of different lengths", from, to, selected)
	}
	blend(oldBytes, newBytes, maskBytes)
	merged, _ := netip.AddrFromSlice(oldBytes)
	return merged.String(), nil
}

// prefixMask returns the mask of a prefix of some bits, of the family of an address.
func prefixMask(like netip.Addr, length int) (netip.Addr, error) {
	raw := make([]byte, like.BitLen()/8)
	for i := range raw {
		raw[i] = 0xff
	}
	ones, _ := netip.AddrFromSlice(raw)
	prefix, err := ones.Prefix(length)
	return prefix.Addr(), err
}

// blend sets the bits of old that mask selects as in bits.
func blend(old, bits, mask []byte) {
	for i := range old {
		old[i] = old[i]&^mask[i] | bits[i]&mask[i]
	}
}
