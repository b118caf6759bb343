package pass

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// nextHop matches the remark behind the action that puts the address of the next hop where
// OVN's routers look its MAC address up: an IPv4 address in reg0, an IPv6 address in xxreg0.
var nextHop = lazyregexp.New(`^-> NXM_NX_(?:REG0|XXREG0)\[\] is now 0x([0-9a-f]{1,32})$`)

// NextHop returns the address that the pass last looked up among those that the routers of OVN
// have learned; it is not valid if the pass shows none.
func (p *Pass) NextHop() netip.Addr {
	found := ""
	for line := range p.lines {
		if match := nextHop.FindStringSubmatch(line); match != nil {
			found = match[1]
		}
	}
	size := 8
	if len(found) > size {
		size = 32
	}
	raw, err := hex.DecodeString(strings.Repeat("0", max(0, size-len(found))) + found)
	if err != nil || found == "" {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(raw)
	return ip
}
