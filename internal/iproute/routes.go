package iproute

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Main is the routing table that a node uses without rules, and Local that of its own addresses.
const (
	Main  = "main"
	Local = "local"
)

// Unicast is the type of a route that leads to a device.
const Unicast = "unicast"

// Route is a route of the kernel.
type Route struct {
	To     netip.Prefix
	Device string // of several next hops, that of the first
	MTU    int    // of the route itself, 0 if it has none

	Table    string // Main without one in the text
	Type     string // Unicast, "local", "unreachable", "blackhole" ...
	Via      netip.Addr
	Source   netip.Addr
	Metric   uint32
	Protocol string // "kernel", "static", "boot", a number ...
	Scope    string // "link", "host"; "" for the usual one
	OnLink   bool
	NextHops []NextHop // of a route with several
	Unknown  []string  // words of the text that are not in the other fields
}

// NextHop is one of several next hops of a route.
type NextHop struct {
	Via    netip.Addr
	Device string
	Weight int
	OnLink bool
}

// Routes reads the unicast routes of the main table in "ip route show table all", or in the output for one
// table or family. The first of several routes to a prefix is the one that the kernel takes. A route with
// several next hops has the device of the first one.
func Routes(text string) []Route {
	return slices.DeleteFunc(AllRoutes(text), func(r Route) bool { return r.Table != Main || r.Type != Unicast || r.Device == "" })
}

// AllRoutes reads the routes of all tables, families and types in "ip route show table all".
func AllRoutes(text string) []Route {
	var list []Route
	belongs := false // to the last route: the next hops that follow
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "nexthop" {
			if belongs {
				list[len(list)-1].addHop(words[1:])
			}
			continue
		}
		route, ok := routeOf(words)
		if ok {
			list = append(list, route)
		}
		belongs = ok
	}
	return list
}

// addHop adds one of several next hops.
func (r *Route) addHop(words []string) {
	var one Route
	one.readWords(words)
	if one.Device == "" && !one.Via.IsValid() {
		return
	}
	if r.Device == "" {
		r.Device = one.Device
	}
	r.NextHops = append(r.NextHops, NextHop{Via: one.Via, Device: one.Device, OnLink: one.OnLink, Weight: max(1, number(wordAfter(words, "weight")))})
}

func routeOf(words []string) (route Route, ok bool) {
	if len(words) == 0 {
		return route, false
	}
	route.Type, route.Table = Unicast, Main
	if slices.Contains([]string{Unicast, "local", "broadcast", "multicast", "anycast", "unreachable", "blackhole", "prohibit", "throw", "nat"}, words[0]) {
		route.Type = words[0]
		if words = words[1:]; len(words) == 0 {
			return route, false
		}
	}
	route.readWords(words[1:])
	if words[0] == "default" {
		route.To = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if route.Via.Is6() && wordAfter(words, "via") != "inet6" || wordAfter(words, "pref") != "" { // only IPv6 routes have a preference
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

// readWords reads the words that follow a route's prefix.
func (r *Route) readWords(words []string) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		next := ""
		if len(words) > 0 {
			next = words[0]
		}
		takes := 1 // words that belong to word
		switch word {
		case "via":
			if (next == "inet6" || next == "inet") && len(words) > 1 {
				next, takes = words[1], 2
			}
			r.Via, _ = netip.ParseAddr(next)
		case "dev":
			r.Device = next
		case "table":
			r.Table = next
		case "src":
			r.Source, _ = netip.ParseAddr(next)
		case "metric":
			n, _ := strconv.ParseUint(next, 10, 32)
			r.Metric = uint32(n)
		case "proto":
			r.Protocol = next
		case "scope":
			r.Scope = next
		case "mtu":
			if next == "lock" && len(words) > 1 { // path MTU discovery does not lower it
				next, takes = words[1], 2
			}
			r.MTU = number(next)
		case "onlink":
			r.OnLink, takes = true, 0
		case "linkdown", "dead", "pervasive", "offload", "trap", "notify": // states of the kernel's
			takes = 0
		case "pref", "error", "expires", "weight", "nhid", "hoplimit", "users", "age":
		default:
			r.Unknown, takes = append(r.Unknown, word), 0
		}
		words = words[min(takes, len(words)):]
	}
}
