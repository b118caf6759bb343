package appctl

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// MulticastEntry is a line of mdb/show: a port from which a bridge heard members
// of a group or a multicast querier (ofproto/ofproto-dpif.c,
// ofproto_unixctl_mcast_snooping_show).
type MulticastEntry struct {
	Port  string // OpenFlow port number, or LOCAL
	VLAN  uint16
	Group netip.Addr // the zero Addr for the port of a querier
}

// MulticastGroups reads mdb/show. Entries of queriers come last.
func MulticastGroups(text string) []MulticastEntry {
	var groups, queriers []MulticastEntry
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		vlan, err := strconv.ParseUint(words[1], 10, 12)
		if err != nil {
			continue // the heading
		}
		entry := MulticastEntry{Port: words[0], VLAN: uint16(vlan)}
		for _, word := range words[2:] { // OVS 3.4 prints the protocol before the group
			if address, err := netip.ParseAddr(word); err == nil {
				entry.Group = address.Unmap()
			}
		}
		switch {
		case entry.Group.IsValid():
			groups = append(groups, entry)
		case slices.Contains(words, "querier"):
			queriers = append(queriers, entry)
		}
	}
	return append(groups, queriers...)
}
