// Package iproute reads the output of ip(8) of iproute2: the network devices of a node, and the routes, rules
// and neighbours of its kernel. Parsers skip lines that they do not know.
package iproute

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Link is a network device, as "ip address" and "ip link" print it.
type Link struct {
	Index     int
	Name      string
	MTU       int
	Addresses []netip.Addr // none in the output of "ip link"

	Kind     string    // "veth", "bridge", "vlan", "vrf", "bond" ...; "" without -d
	MAC      string    // "" for a device without one
	Up       bool      // it is set up
	Carrier  bool      // its wire is, too
	Master   string    // the bridge, bond or VRF whose port it is
	Peer     string    // what follows the @: the device below, the other end of a veth pair, "if7" in another namespace
	VLAN     int       // of a VLAN device, 0 without -d
	Table    string    // of a VRF, "" without -d
	Assigned []Address // Addresses with their networks
}

// Address is an address of a device.
type Address struct {
	Network netip.Prefix // the address, with the length of its network's prefix
	Peer    netip.Addr   // the other end of a point-to-point device, or the zero Addr
	Scope   string       // "global", "link", "host" ...
}

var (
	// link matches "2: eth0.5@eth0: <BROADCAST,UP> mtu 1500 qdisc mq state UP".
	link    = lazyregexp.New(`^(\d+): ([^\s@]+?)(?:@(\S+))?: <(\S*)> (?:.* )?mtu (\d+)\b`)
	address = lazyregexp.New(`^inet6? ([0-9a-fA-F.:]+)`)
)

// Links reads "ip address" or "ip link", also with -s and -d.
func Links(text string) []Link {
	var list []Link
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := link.FindStringSubmatch(line); found != nil {
			list = append(list, linkOf(found, strings.Fields(line)))
			continue
		}
		if len(list) > 0 {
			list[len(list)-1].read(line)
		}
	}
	return list
}

// linkOf returns a device by what link found in its first line, and the words of that.
func linkOf(found, words []string) Link {
	flags := strings.Split(found[4], ",")
	return Link{Index: number(found[1]), Name: found[2], Peer: strings.TrimSuffix(found[3], ":"), MTU: number(found[5]), Master: wordAfter(words, "master"),
		Up: slices.Contains(flags, "UP"), Carrier: slices.Contains(flags, "LOWER_UP")}
}

// read adds what a further line says about the device.
func (l *Link) read(line string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	if strings.HasPrefix(words[0], "link/") {
		if len(words) > 1 && strings.Count(words[1], ":") == 5 {
			l.MAC = words[1]
		}
		if len(words) > 2 {
			words = words[2:] // -d goes on in this line
		}
	}
	if found := address.FindStringSubmatch(line); found != nil {
		l.readAddress(found[1], words)
		return
	}
	switch words[0] {
	case "veth", "bridge", "bond", "dummy", "vxlan", "geneve", "tun", "macvlan", "ipvlan", "openvswitch", "gre", "wireguard", "ifb":
		l.Kind = words[0]
	case "vlan":
		l.Kind, l.VLAN = "vlan", number(wordAfter(words, "id"))
	case "vrf":
		l.Kind, l.Table = "vrf", wordAfter(words, "table")
	}
}

// readAddress adds the address of a line. "inet 10.9.0.1 peer 10.9.0.2/32" has the prefix's length at the peer.
func (l *Link) readAddress(text string, words []string) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return
	}
	l.Addresses = append(l.Addresses, addr)
	assigned := Address{Network: netip.PrefixFrom(addr, addr.BitLen()), Scope: wordAfter(words, "scope")}
	if network, err := netip.ParsePrefix(words[1]); err == nil {
		assigned.Network = network
	}
	if peer, err := netip.ParsePrefix(wordAfter(words, "peer")); err == nil && peer.Addr().BitLen() == addr.BitLen() {
		assigned.Network, assigned.Peer = netip.PrefixFrom(addr, peer.Bits()), peer.Addr()
	}
	l.Assigned = append(l.Assigned, assigned)
}

// number returns 0 for a text that is not a number.
func number(text string) int {
	n, _ := strconv.ParseUint(text, 10, 31)
	return int(n)
}

// wordAfter returns the word that follows another one, "" without it.
func wordAfter(words []string, word string) string {
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
