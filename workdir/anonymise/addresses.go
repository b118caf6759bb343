package anonymise

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// Addresses keep their prefixes: two addresses of one network are replaced by two of one network, however long its
// prefix is. What has a meaning by itself stays: loopback, link-local and multicast addresses, and the unspecified one.

// special4 and special6 are the prefixes of addresses with a meaning by themselves (RFC 6890, RFC 4291).
var (
	special4 = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3")}
	special6 = []netip.Prefix{netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8")}
)

// isSpecial reports whether an address has a meaning by itself.
func isSpecial(a netip.Addr) bool {
	return slices.ContainsFunc(slices.Concat(special4, special6), func(p netip.Prefix) bool { return p.Contains(a) })
}

// leadsTo reports whether one of the prefixes begins with the first n bits of an address: a change of the bit after
// them could make a special address of another one, or the reverse.
func leadsTo(prefixes []netip.Prefix, beginning netip.Addr, n int) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return n < p.Bits() && netip.PrefixFrom(beginning, n).Contains(p.Addr())
	})
}

// hostBits is the number of bits at the end of an IPv4 address that stay, so that broadcast addresses and ranges of
// addresses stay what they are. In a larger network of an interface more stay, but at most mostHostBits.
const (
	hostBits     = 8
	mostHostBits = 12
)

// address4 replaces the first n bits of an IPv4 address.
func (r *renamer) address4(a netip.Addr, n int) netip.Addr {
	if isSpecial(a) {
		return a
	}
	end := min(n, 32-hostBits)
	for bits := smallestNetwork; bits < end; bits++ {
		if r.isAttached(a, bits) {
			end = min(end, max(bits, 32-mostHostBits))
		}
	}
	number := a.As4()
	replaced := r.key.bits(ofIPv4, number[:], 0, end, func(beginning []byte, n int) bool {
		from := netip.AddrFrom4([4]byte(beginning))
		return leadsTo(special4, from, n) || r.leadsToBroadcast(from, n)
	})
	return netip.AddrFrom4([4]byte(replaced))
}

func (r *renamer) isAttached(a netip.Addr, bits int) bool {
	return r.found.attached[netip.PrefixFrom(a, bits).Masked()]
}

// leadsToBroadcast reports whether the first n bits are those of the broadcast address of a large network of an interface: the bit
// after them stays.
func (r *renamer) leadsToBroadcast(beginning netip.Addr, n int) bool {
	number := beginning.As4()
	bits := binary.BigEndian.Uint32(number[:])
	for length := n; length >= smallestNetwork; length-- {
		if length < 32-hostBits && r.isAttached(beginning, length) {
			return true
		}
		if bits&(1<<(32-length)) == 0 { // the last bit of so many is not set
			return false
		}
	}
	return false
}

// readable returns the networks of interfaces in which more than hostBits of the addresses stay.
func (f *found) readable() (all []string) {
	for network := range f.attached {
		if network.Bits() < 32-hostBits {
			all = append(all, fmt.Sprintf("%s (%d)", network, min(mostHostBits, 32-network.Bits())))
		}
	}
	slices.Sort(all)
	return all
}

// prefixBits is the number of bits at the beginning of an IPv6 address that are replaced. The next ones number the
// subnets of a site; flows compare each 32 bits of an address with a register of its own.
const prefixBits = 32

// address6 replaces the first n bits of an IPv6 address. An interface identifier that was made from a MAC address
// (RFC 4291, appendix A) becomes that of the replaced one, and so does a solicited-node address.
func (r *renamer) address6(a netip.Addr, n int) netip.Addr {
	number := a.As16()
	if at, ok := embedded(a); ok {
		if inner := addressOf(number[at : at+4]); n > 8*at {
			copy(number[at:], r.replaced(inner, min(32, n-8*at)).AsSlice())
		}
		return netip.AddrFrom16(number)
	}
	if solicited := netip.MustParsePrefix("ff02::1:ff00:0/104"); solicited.Contains(a) && n == 128 {
		copy(number[13:], r.key.device(number[13:]))
		return netip.AddrFrom16(number)
	}
	linkLocal := special6[1].Contains(a)
	if isSpecial(a) && !linkLocal {
		return a
	}
	if !linkLocal {
		number = [16]byte(r.key.bits(ofIPv6, number[:], 0, min(n, prefixBits), func(beginning []byte, n int) bool {
			return leadsTo(special6, netip.AddrFrom16([16]byte(beginning)), n)
		}))
	}
	if n >= 88 && (number[8] != 0 || number[9] != 0 || number[10] != 0) {
		vendor := r.key.vendor([]byte{number[8] ^ localBit, number[9], number[10]})
		copy(number[8:], []byte{vendor[0] ^ localBit, vendor[1], vendor[2]})
	}
	if n == 128 {
		copy(number[13:], r.key.device(number[13:]))
	}
	return netip.AddrFrom16(number)
}

// The prefixes of IPv6 addresses that are made of an IPv4 address: IPv4-compatible (RFC 4291), translated by SIIT or NAT64
// (RFC 2765, RFC 6052), and 6to4 (RFC 3056).
var (
	compatible = netip.MustParsePrefix("::/80")
	translated = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
)

// embedded returns the offset of the IPv4 address in an IPv6 address that is made of one.
func embedded(a netip.Addr) (at int, ok bool) {
	const atEnd, after6to4 = 12, 2
	a = a.WithZone("")
	number := a.As16()
	switch {
	case a.Is4():
		return 0, false
	case sixToFour.Contains(a):
		return after6to4, true
	case translated.Contains(a), a.Is4In6(), netip.PrefixFrom(a, 64).Masked().Addr().IsUnspecified() && number[8] == 0xff && number[9] == 0xff &&
		number[10] == 0 && number[11] == 0:
		return atEnd, true
	}
	return atEnd, compatible.Contains(a) && number[10] == 0 && number[11] == 0 && number[12] != 0 // IPv4-compatible
}

// address replaces the first n bits of an address.
func (r *renamer) address(a netip.Addr, n int) netip.Addr {
	if a.Is4() {
		return r.address4(a, n)
	}
	return r.address6(a, n)
}

// MAC addresses have a vendor's part and a device's part, which are replaced one by one: IPv6 addresses hold both, or
// the second.

// localBit is the bit of a MAC address that says that it is administered locally, and groupBit that of multicast.
const (
	localBit = 0x02
	groupBit = 0x01
)

// ofPods holds the first two bytes of the MAC addresses that ovn-kubernetes gives pods (go-controller/pkg/util,
// IPAddrToHWAddr), without localBit. They stay, because a port without external_ids is recognised as a pod's by them.
var ofPods = [2]byte{0x0a &^ localBit, 0x58}

// vendor replaces the first three bytes of a MAC address, but for the two bits with a meaning.
func (k key) vendor(b []byte) []byte {
	flags := b[0] & (localBit | groupBit)
	plain := []byte{b[0] &^ (localBit | groupBit), b[1], b[2]}
	replaced := k.bits(ofVendor, plain, 0, 24, func(beginning []byte, n int) bool {
		rest := 16 - n
		return n == 6 || n == 7 || rest > 0 && binary.BigEndian.Uint16(beginning)>>rest == binary.BigEndian.Uint16(ofPods[:])>>rest
	})
	replaced[0] |= flags
	return replaced
}

// device replaces the last three bytes of a MAC address. Low numbers stay: somebody counted them, or they come from an
// IPv6 address that ends in one.
func (k key) device(b []byte) []byte {
	if b[0] == 0 {
		return slices.Clone(b)
	}
	return k.bits(ofDevice, b, 0, 24, func(beginning []byte, n int) bool { return n < 8 && beginning[0] == 0 })
}

// wide replaces eight or more bytes: the MAC address in them, or all bytes but the first.
func (k key) wide(b []byte) []byte {
	to := slices.Clone(b)
	switch m, ok := macIn(b); {
	case ok && isEUI(b):
		is := k.mac(m)
		copy(to, is[:3])
		copy(to[5:], is[3:])
	case ok:
		is := k.mac(m)
		copy(to[2:], is[:])
	default:
		copy(to[1:], k.bits(ofWide, b[1:], 0, 8*len(b)-8, func([]byte, int) bool { return false }))
	}
	return to
}

// mac replaces a MAC address. That of an IPv6 solicited-node address (RFC 2464) becomes that of the replaced one.
func (k key) mac(m [6]byte) [6]byte {
	switch {
	case m[0] == 0x33 && m[1] == 0x33 && m[2] == 0xff:
		return [6]byte(append(slices.Clone(m[:3]), k.device(m[3:])...))
	case m[0]&groupBit != 0, m == [6]byte{}:
		return m
	}
	return [6]byte(append(k.vendor(m[:3]), k.device(m[3:])...))
}
