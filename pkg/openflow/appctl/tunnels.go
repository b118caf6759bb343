package appctl

import (
	"fmt"
	"net/netip"
	"slices"

	"ovs-offline/internal/lazyregexp"
)

// Route is an entry of ovs/route/show (lib/ovs-router.c, ovs_router_show).
type Route struct {
	To      netip.Prefix
	Mark    string // mark of the packets that the route applies to, "" for all packets
	Device  string
	Gateway string
	Source  netip.Addr // the zero Addr if the version of OVS does not print it
	Local   bool       // To is an address of the host
}

var route = lazyregexp.New(`^(?:Cached|User): (\S+)(?: MARK (\S+))? dev (\S+)(?: GW (\S+))?(?: SRC (\S+))?( local)?$`)

// Routes reads ovs/route/show. It prints a host route without a prefix length.
func Routes(text string) []Route {
	var list []Route
	for found := range parts(text, route) {
		to, err := netip.ParsePrefix(found[1])
		if address, notAddress := netip.ParseAddr(found[1]); err != nil && notAddress == nil {
			to, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			continue
		}
		source, _ := netip.ParseAddr(found[5])
		list = append(list, Route{to, found[2], found[3], found[4], source, found[6] != ""})
	}
	return list
}

// String describes a route; equal routes have equal descriptions.
func (r Route) String() string {
	return fmt.Sprintf("%v mark %q by %s via %q from %v", r.To, r.Mark, r.Device, r.Gateway, r.Source)
}

// RouteTo returns the most specific route to an address, of those for all packets.
func RouteTo(routes []Route, to netip.Addr) (best Route, found bool) {
	for _, route := range routes {
		if !route.Local && route.Mark == "" && route.To.Contains(to) && (!found || route.To.Bits() > best.To.Bits()) {
			best, found = route, true
		}
	}
	return best, found
}

// Neighbour is an entry of tnl/arp/show (lib/tnl-neigh-cache.c, tnl_neigh_cache_show).
type Neighbour struct{ Address, MAC, Bridge string }

var neighbour = lazyregexp.New(`^([0-9a-fA-F.:]+)\s+([0-9a-f]{2}(?::[0-9a-f]{2}){5})\s+(\S.*)$`)

// Neighbours reads tnl/arp/show.
func Neighbours(text string) []Neighbour {
	return slices.Collect(each(text, neighbour, func(found []string, _ string) Neighbour { return Neighbour{found[1], found[2], found[3]} }))
}

// listedTunnel matches "port 4: ovn-node-0 (geneve: ::->10.10.2.33, key=flow, dp port=4, ttl=64)".
var listedTunnel = lazyregexp.New(`(?m)^\s*port \d+: \S+ \((\w+): `)

// TunnelTypes reads ofproto/list-tunnels (ofproto/tunnel.c, tnl_port_list): the types of the tunnels, each
// once.
func TunnelTypes(text string) (types []string) {
	for _, found := range listedTunnel.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(types, found[1]) {
			types = append(types, found[1])
		}
	}
	return types
}

// tunnelPort matches "genev_sys_6081 (6081) ref_cnt=1", or with -v "genev_sys_6081 (6081) :
// eth(dst=..),eth_type(0x0800),ipv4(dst=172.18.0.2,proto=17,frag=no),udp(dst=6081)".
var tunnelPort = lazyregexp.New(`^(\S+) \(\d+\)(.*)`)

// address matches what an entry with -v says about an address of the host.
var address = lazyregexp.New(`(?:eth|eth_type|ipv4|ipv6)\([^)]*\),`)

// TunnelPorts reads tnl/ports/show -v (lib/tnl-ports.c, tnl_port_show). It returns which
// ports listen, and to which protocol, in the order of the text. It leaves out datapath port
// numbers, which ovs-vswitchd chooses. It leaves out addresses, because ovs-vswitchd prints
// an entry for every address of the host, whether a tunnel uses it or not.
func TunnelPorts(text string) []string {
	var list []string
	for entry := range each(text, tunnelPort, func(found []string, _ string) string { return found[1] + address.ReplaceAllString(found[2], "") }) {
		if !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return list
}
