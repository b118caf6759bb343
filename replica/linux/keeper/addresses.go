//go:build linux

package keeper

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ipNet returns a prefix as package net has it.
func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// prefixOf returns the prefix of a network of package net; the zero Prefix for none.
func prefixOf(network *net.IPNet) netip.Prefix {
	if network == nil {
		return netip.Prefix{}
	}
	addr, ok := netip.AddrFromSlice(network.IP)
	ones, bits := network.Mask.Size()
	if ok && bits == 32 {
		addr = addr.Unmap()
	}
	if !ok || bits == 0 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(addr, ones)
}

// addrOf returns an address of package net; the zero Addr for none.
func addrOf(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}

// broadcast returns the last address of an IPv4 network.
func broadcast(network *net.IPNet) net.IP {
	ip := make(net.IP, len(network.IP))
	for i := range ip {
		ip[i] = network.IP[i] | ^network.Mask[i]
	}
	return ip
}

// scopeNumber returns the number of a scope; that of "global" for an unknown one.
func scopeNumber(scope string) int {
	switch scope {
	case "link":
		return int(netlink.SCOPE_LINK)
	case "host":
		return int(netlink.SCOPE_HOST)
	case "site":
		return int(netlink.SCOPE_SITE)
	case "nowhere":
		return int(netlink.SCOPE_NOWHERE)
	}
	if n := number(scope); n > 0 && n < 256 {
		return n
	}
	return int(netlink.SCOPE_UNIVERSE)
}

// number returns 0 for a text that is not a number.
func number(text string) int {
	n, _ := strconv.ParseUint(text, 0, 32)
	return int(n)
}

// family returns the address family of an address.
func family(addr netip.Addr) int {
	if addr.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
