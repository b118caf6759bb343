package anonymise

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// found is what the texts of all nodes hold that is replaced.
type found struct {
	words     map[string]bool // without those that stay, in lower case
	prose     map[string]bool // words of texts for people: they stay if they are not among words
	addresses map[netip.Addr]bool
	macs      map[[6]byte]bool
	uuids     map[string]bool       // with dashes, in lower case
	starts    map[string]bool       // the first eight digits of UUIDs, and the first six, which names of tunnels have
	attached  map[netip.Prefix]bool // the IPv4 networks in which an interface has an address
	excluded  map[netip.Prefix]bool
	prefixes  map[netip.Prefix]bool // with masks
}

// ofTunnel is the number of digits of a chassis's name in the name of a tunnel's port (controller/encaps.c of OVN).
const ofTunnel = 6

func newFound() *found {
	return &found{map[string]bool{}, map[string]bool{}, map[netip.Addr]bool{}, map[[6]byte]bool{}, map[string]bool{}, map[string]bool{}, map[netip.Prefix]bool{}, map[netip.Prefix]bool{}, map[netip.Prefix]bool{}}
}

// add adds what a text holds. isProse says that the text is for people, as a log is.
func (f *found) add(text []byte, isProse bool, stays vocabulary) {
	excludes := false // what follows !=, which may be a list
	tokens(text, func(_ []byte, t token) {
		if t.kind == other {
			excludes = bytes.Contains(t.text, []byte("!=")) || excludes && len(bytes.Trim(t.text, " ,{")) == 0
		}
		switch t.kind {
		case word:
			excludes = false
			into := f.words
			if isProse {
				into = f.prose
			}
			if m, ok := plainMAC(t.text); ok {
				f.macs[m] = true
			} else if text := string(t.text); !stays.has(text) {
				into[strings.ToLower(text)] = true
			}
		case uuid:
			text := dashed(t.text)
			f.uuids[text], f.starts[text[:keptDigits]], f.starts[text[:ofTunnel]] = true, true, true
		case mac:
			if m, err := net.ParseMAC(string(t.text)); err == nil {
				f.macs[[6]byte(m)] = true
			}
		case address:
			f.addAddress(t.text, excludes)
		}
	})
}

// smallestNetwork is the length of the shortest prefix that is taken for that of an interface's network.
const smallestNetwork = 8

func (f *found) addAddress(text []byte, isExcluded bool) {
	a, mask, ok := parseAddress(text)
	bits := ones(mask)
	if !ok || bits < 0 {
		return
	}
	f.addresses[a] = true
	network := netip.PrefixFrom(a, bits).Masked()
	if isExcluded {
		f.excluded[network] = true
	}
	if bits < a.BitLen() {
		f.prefixes[network] = true
	}
	if a.Is4() && bits >= smallestNetwork && bits < 32 && network.Addr() != a {
		f.attached[network] = true
	}
}

// parseAddress reads an address with a mask, or without one: then all bits of the mask are set.
func parseAddress(text []byte) (a netip.Addr, mask net.IPMask, ok bool) {
	plain, masked, isMasked := strings.Cut(string(text), "/")
	if !strings.ContainsAny(plain, ".:") {
		plain = strings.NewReplacer("-", ".", "_", ".").Replace(plain)
	}
	a, err := netip.ParseAddr(plain)
	if err != nil {
		return a, nil, false
	}
	if !isMasked {
		return a, net.CIDRMask(a.BitLen(), a.BitLen()), true
	}
	if prefix, err := netip.ParsePrefix(plain + "/" + masked); err == nil {
		return a, net.CIDRMask(prefix.Bits(), a.BitLen()), true
	}
	of, err := netip.ParseAddr(masked)
	if err != nil || of.BitLen() != a.BitLen() {
		return a, nil, false
	}
	return a, net.IPMask(of.AsSlice()), true
}

// ones returns the number of bits that are set in a mask, -1 if these are not its first ones.
func ones(mask net.IPMask) int {
	n, size := mask.Size()
	if size == 0 {
		return -1
	}
	return n
}

// dashed returns a UUID with dashes, in lower case.
func dashed(text []byte) string {
	digits := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(string(text)))
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// plainMAC reads a MAC address without separators: the digits of one, or those of a datapath ID, which begins with
// four zeros more.
func plainMAC(text []byte) (m [6]byte, ok bool) {
	const digits, ofDatapath = 12, 16
	if len(text) == ofDatapath && bytes.HasPrefix(text, []byte("0000")) {
		text = text[ofDatapath-digits:]
	} else if len(text) == digits && run(text, isDigit) == digits {
		return m, false // a number
	}
	if len(text) != digits || run(text, isHex) != digits {
		return m, false
	}
	for i := range m {
		m[i] = digit(text[2*i])<<4 | digit(text[2*i+1])
	}
	return m, true
}

// digit returns the value of a hexadecimal digit.
func digit(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// hasUUID reports whether a UUID with these first digits was found.
func (f *found) hasUUID(start []byte) bool { return f.starts[strings.ToLower(string(start))] }

// sortedKeys returns the keys of a set in their order.
func sortedKeys(set map[string]bool) []string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
