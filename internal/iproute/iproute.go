// Package iproute reads the output of ip(8) of iproute2: the network devices of a node, and
// the routes of its kernel. Parsers skip lines that they do not know.
package iproute

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Link is a network device, as "ip address" and "ip link" print it.
type Link struct {
	Name      string
	MTU       int
	Addresses []netip.Addr // none in the output of "ip link"
}

var (
	// link matches "2: eth0.5@eth0: <BROADCAST,UP> mtu 1500 qdisc mq state UP".
	link    = regexp.MustCompile(`^\d+: ([^\s@]+?)(?:@\S+)?: <\S*> (?:.* )?mtu (\d+)\b`)
	address = regexp.MustCompile(`^inet6? ([0-9a-fA-F.:]+)`)
)

// Links reads "ip address" or "ip link", also with -s and -d.
func Links(text string) []Link {
	var list []Link
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := link.FindStringSubmatch(line); found != nil {
			list = append(list, Link{Name: found[1], MTU: number(found[2])})
			continue
		}
		if found := address.FindStringSubmatch(line); found != nil && len(list) > 0 {
			if addr, err := netip.ParseAddr(found[1]); err == nil {
				last := &list[len(list)-1]
				last.Addresses = append(last.Addresses, addr)
			}
		}
	}
	return list
}

// Route is a unicast route of the main table.
type Route struct {
	To     netip.Prefix
	Device string
	MTU    int // of the route itself, 0 if it has none
}

// Routes reads "ip route show table all", or the output for one table or family. The first
// of several routes to a prefix is the one that the kernel takes. A route with several next
// hops has the device of the first one.
func Routes(text string) []Route {
	var list []Route
	var several *Route // the route whose next hops follow
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "nexthop" {
			if device := wordAfter(words, "dev"); several != nil && device != "" {
				several.Device = device
				list = append(list, *several)
				several = nil
			}
			continue
		}
		several = nil
		route, ok := routeOf(words)
		switch {
		case ok && route.Device != "":
			list = append(list, route)
		case ok:
			several = &route
		}
	}
	return list
}

func routeOf(words []string) (route Route, ok bool) {
	if len(words) == 0 || !slices.Contains([]string{"", "main"}, wordAfter(words, "table")) {
		return route, false
	}
	route.Device = wordAfter(words, "dev")
	route.MTU = number(wordAfter(words, "mtu"))
	if wordAfter(words, "mtu") == "lock" { // path MTU discovery does not lower it
		route.MTU = number(wordAfter(words, "lock"))
	}
	if words[0] == "default" {
		route.To = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if strings.Contains(wordAfter(words, "via"), ":") || wordAfter(words, "pref") != "" { // only IPv6 routes have a preference
			route.To = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return route, true
	}
	to, err := netip.ParsePrefix(words[0])
	if addr, notAddress := netip.ParseAddr(words[0]); err != nil && notAddress == nil {
		to, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	route.To = to
	return route, err == nil
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

// Rule is a rule of the routing policy database (ip-rule(8)).
type Rule struct {
	Priority int
	Text     string // what follows the priority, as ip prints it
}

// Neighbour is an entry of the neighbour table (ip-neighbour(8)).
type Neighbour struct {
	Address netip.Addr
	Device  string
	MAC     string // "" for one that did not answer
	State   string // "REACHABLE", "STALE", "PERMANENT", "FAILED" ...
}
