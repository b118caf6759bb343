package ovn

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// ParseAddress reads an address without a zone; an IPv4 address in IPv6 notation counts as
// IPv4.
func ParseAddress(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

// ParseVIP reads ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT; port is 0 for none.
func ParseVIP(text string) (ip netip.Addr, port uint16, ok bool) {
	if ip, ok := ParseAddress(strings.Trim(text, "[]")); ok {
		return ip, 0, true
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return ip, 0, false
	}
	number, err := strconv.ParseUint(text[at+1:], 10, 16)
	ip, ok = ParseAddress(strings.Trim(text[:at], "[]"))
	return ip, uint16(number), ok && err == nil
}

// MAC returns a MAC address in the notation of Open vSwitch, "" for another text.
func MAC(text string) string {
	if text = strings.ToLower(text); isMAC.MatchString(text) {
		return text
	}
	return ""
}

var isMAC = lazyregexp.New(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)

// ParseAddresses reads an element of a port's addresses: a MAC address, and IP addresses.
func ParseAddresses(text string) (mac string, ips []netip.Addr) {
	for word := range strings.FieldsSeq(text) {
		if m := MAC(word); m != "" {
			mac = cmp.Or(mac, m)
			continue
		}
		address, _, _ := strings.Cut(word, "/")
		if ip, ok := ParseAddress(address); ok {
			ips = append(ips, ip)
		}
	}
	return mac, ips
}

// AllowedBy returns the IP addresses that an element of a port's port_security allows; without
// any, it allows all.
func AllowedBy(element string) []netip.Prefix {
	var found []netip.Prefix
	for word := range strings.FieldsSeq(element) {
		if prefix := Prefix(word); prefix.IsValid() {
			found = append(found, prefix)
		}
	}
	return found
}

// Prefix reads a prefix, or an address as the prefix of it alone; another text is the zero Prefix.
func Prefix(text string) netip.Prefix {
	if ip, ok := ParseAddress(text); ok {
		return netip.PrefixFrom(ip, ip.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix.Masked()
}

// Networks reads addresses with the lengths of their prefixes, as router ports have them. Other texts
// are left out.
func Networks(texts []string) []netip.Prefix {
	var found []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			found = append(found, prefix)
		}
	}
	return found
}
