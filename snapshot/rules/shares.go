package rules

import (
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// shares counts the northbound rows that have something in common: ovn-northd makes one logical flow of
// all rows that need the same one, and the flow's stage hint is the UUID of one of them.
type shares struct {
	snats map[string]int // rules that translate sources, by external address
	hops  map[string]int // static routes, by next hop
	vips  map[string]int // load balancers, by the address of a VIP
}

func (n *Northbound) readShares() shares {
	s := shares{map[string]int{}, map[string]int{}, map[string]int{}}
	// The rows that can't be read keep their own words.
	_ = n.nb.Each("NAT", func(row ovsdb.Row) {
		if row.String("type") == "snat" {
			s.snats[row.String("external_ip")]++
		}
	}, "type", "external_ip")
	_ = n.nb.Each("Logical_Router_Static_Route", func(row ovsdb.Row) { s.hops[row.String("nexthop")]++ }, "nexthop")
	_ = ovn.EachBalancer(n.nb, func(b *ovn.Balancer) {
		addresses := map[string]bool{}
		for vip := range b.VIPs {
			address, _ := cutVIP(vip)
			addresses[address] = true
		}
		for address := range addresses {
			s.vips[address]++
		}
	})
	return s
}

// cutVIP returns the address and the port ("" for none) of a VIP: ADDRESS, ADDRESS:PORT or
// [ADDRESS]:PORT.
func cutVIP(vip string) (address, port string) {
	at := strings.LastIndexByte(vip, ':')
	if at < 0 || strings.Count(vip, ":") > 1 && !strings.HasPrefix(vip, "[") {
		return vip, ""
	}
	return strings.Trim(vip[:at], "[]"), vip[at+1:]
}

// sharesAddress reports whether a logical flow serves other NAT rules too: it matches only the
// external address, and several rules translate into that.
func (n *Northbound) sharesAddress(row ovsdb.Row, rule Rule) bool {
	return rule.Match != "" && !strings.Contains(rule.Match, row.String("logical_ip")) && (n.shares().snats[row.String("external_ip")] > 1 || n.nb.Lacks("NAT", true, "type", "external_ip") != "")
}

// sharesNextHop reports whether a logical flow serves other static routes too: it matches no
// destination, and several routes have the next hop.
func (n *Northbound) sharesNextHop(row ovsdb.Row, rule Rule) bool {
	prefix, _, _ := strings.Cut(row.String("ip_prefix"), "/")
	return rule.Match != "" && !strings.Contains(rule.Match, prefix) && (n.shares().hops[row.String("nexthop")] > 1 || n.nb.Lacks("Logical_Router_Static_Route", true, "nexthop") != "")
}

// sharedVIP describes the load balancers of a logical flow that serves several: it matches only the
// address of a VIP, and several have it. It returns "" for a flow of the row alone.
func (n *Northbound) sharedVIP(row ovsdb.Row, rule Rule) string {
	for vip := range row.Map("vips") {
		address, port := cutVIP(vip)
		if port != "" && strings.HasSuffix(rule.Match, "== "+address) && (n.shares().vips[address] > 1 || n.nb.Lacks("Load_Balancer", true, "vips") != "") {
			return KindLoadBalancer + "s with the address " + address
		}
	}
	return ""
}
