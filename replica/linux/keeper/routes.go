//go:build linux

package keeper

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
)

// maxRoutes bounds the routes of one namespace, and maxRules and maxNeighbours the others.
const (
	maxRoutes     = 200000
	maxRules      = 20000
	maxNeighbours = 50000
)

// isKernels reports whether the kernel makes a route by itself, from the addresses and the state of devices.
func isKernels(r iproute.Route) bool {
	return r.Protocol == "kernel" && (r.Table == iproute.Local || r.Type != iproute.Unicast || r.Device == loopback || r.To.Addr().IsMulticast() || r.To.Addr().IsLinkLocalUnicast())
}

// toRestore returns the recorded routes without the ones that the kernel makes by itself. The route to a gateway
// comes before the routes through the gateway.
func (s *space) toRestore() []iproute.Route {
	routes := slices.DeleteFunc(slices.Clone(s.recorded.Routes), isKernels)
	slices.SortStableFunc(routes, func(a, b iproute.Route) int { return cmp.Compare(throughGateway(a), throughGateway(b)) })
	return routes
}

// throughGateway is 0 for a route to what is on the wire, 1 for one through a gateway.
func throughGateway(r iproute.Route) int {
	if r.Via.IsValid() || len(r.NextHops) > 0 {
		return 1
	}
	return 0
}

// addRoutes adds the recorded routes.
func (s *space) addRoutes() {
	routes := s.toRestore()
	s.report.Record(report.Routes, len(routes))
	if len(routes) > maxRoutes {
		s.report.RejectUnnamed(report.Routes, len(routes)-maxRoutes, "only the first %d routes are restored", maxRoutes)
		routes = routes[:maxRoutes]
	}
	for _, route := range routes {
		if err := s.addRoute(route); err != nil {
			s.report.Reject(report.Routes, routeText(route), "%v", err)
		}
	}
}

// addRoute adds one route. One whose gateway is not on a wire, as the kernel sees it now, is added as if it were:
// on the node, the kernel took it when the device had another address.
func (s *space) addRoute(route iproute.Route) error {
	r, err := s.netlinkRoute(route)
	if err != nil {
		return err
	}
	err = s.handle.RouteAdd(r)
	if errors.Is(err, unix.EEXIST) {
		err = s.handle.RouteAppend(r)
		if errors.Is(err, unix.EEXIST) {
			err = nil
		}
	}
	if (errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL)) && route.Via.IsValid() && !route.OnLink {
		r.Flags |= int(netlink.FLAG_ONLINK)
		if s.handle.RouteAdd(r) == nil {
			s.report.Remark("the route %s is onlink: its gateway is on no network of the device", routeText(route))
			return nil
		}
	}
	return err
}

// netlinkRoute returns a route as the library has it.
func (s *space) netlinkRoute(route iproute.Route) (*netlink.Route, error) {
	if len(route.Unknown) > 0 {
		s.report.Remark("the route %s is restored without %q", routeText(route), strings.Join(route.Unknown, " "))
	}
	table, err := s.tableNumber(route.Table)
	if err != nil {
		return nil, err
	}
	r := &netlink.Route{Table: table, Dst: ipNet(route.To), Priority: int(route.Metric), MTU: route.MTU, Protocol: protocolNumber(route.Protocol),
		Type: routeType(route.Type), Family: family(route.To.Addr())}
	r.Scope = netlink.Scope(scopeNumber(route.Scope))
	if route.Source.IsValid() {
		r.Src = route.Source.AsSlice()
	}
	if len(route.NextHops) == 0 {
		hop, err := s.nextHop(iproute.NextHop{Via: route.Via, Device: route.Device, OnLink: route.OnLink}, route)
		if err != nil {
			return nil, err
		}
		r.LinkIndex, r.Gw, r.Via, r.Flags = hop.LinkIndex, hop.Gw, hop.Via, hop.Flags
		return r, nil
	}
	for _, one := range route.NextHops {
		hop, err := s.nextHop(one, route)
		if err != nil {
			return nil, err
		}
		r.MultiPath = append(r.MultiPath, hop)
	}
	return r, nil
}

// nextHop returns a next hop as the library has it.
func (s *space) nextHop(hop iproute.NextHop, route iproute.Route) (*netlink.NexthopInfo, error) {
	info := &netlink.NexthopInfo{Hops: max(0, hop.Weight-1)}
	if hop.Device != "" && (route.Type == iproute.Unicast || route.Type == "local" || route.Type == "broadcast" || route.Type == "multicast") {
		d := s.device(hop.Device)
		if d == nil {
			return nil, fmt.Errorf("there is no device %s", hop.Device)
		}
		info.LinkIndex = d.link.Attrs().Index
	}
	if hop.OnLink {
		info.Flags |= int(netlink.FLAG_ONLINK)
	}
	switch {
	case hop.Via.IsValid() && hop.Via.Is4() == route.To.Addr().Is4():
		info.Gw = hop.Via.AsSlice()
	case hop.Via.IsValid():
		info.Via = &netlink.Via{AddrFamily: family(hop.Via), Addr: hop.Via.AsSlice()}
	}
	return info, nil
}

// routeText returns a route in few words, for the report.
func routeText(r iproute.Route) string {
	words := []string{r.To.String()}
	if r.Type != iproute.Unicast {
		words = []string{r.Type, r.To.String()}
	}
	if r.Via.IsValid() {
		words = append(words, "via", r.Via.String())
	}
	if r.Device != "" {
		words = append(words, "dev", r.Device)
	}
	if r.Table != iproute.Main {
		words = append(words, "table", r.Table)
	}
	return strings.Join(words, " ")
}

// firstNamedTable is the number of the first table that was recorded by a name of the node.
const firstNamedTable = 0x0f000000

// tableNumber returns the number of a table. A name other than the kernel's own gets a number of ours.
func (s *space) tableNumber(name string) (int, error) {
	switch name {
	case "", iproute.Main:
		return unix.RT_TABLE_MAIN, nil
	case iproute.Local:
		return unix.RT_TABLE_LOCAL, nil
	case "default":
		return unix.RT_TABLE_DEFAULT, nil
	case "unspec", "all":
		return unix.RT_TABLE_MAIN, nil
	}
	if n, err := strconv.ParseUint(name, 0, 32); err == nil {
		return int(n), nil
	}
	if s.tables == nil {
		s.tables = map[string]int{}
	}
	if s.tables[name] == 0 {
		s.tables[name] = firstNamedTable + len(s.tables)
		s.report.Remark("table %s has the number %d here: that of the node is in its rt_tables", name, s.tables[name])
	}
	return s.tables[name], nil
}

// routeTypes are the types of routes by the kernel's numbers (linux/rtnetlink.h).
func routeTypes() []string {
	return []string{"unspec", iproute.Unicast, "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw", "nat"}
}

func routeType(name string) int { return max(unix.RTN_UNICAST, slices.Index(routeTypes(), name)) }

// protocolNumber returns the number of a protocol that made a route, as /etc/iproute2/rt_protos has them; that of
// "static" for an unknown one.
func protocolNumber(name string) netlink.RouteProtocol {
	known := map[string]int{"redirect": unix.RTPROT_REDIRECT, "kernel": unix.RTPROT_KERNEL, "boot": unix.RTPROT_BOOT, "static": unix.RTPROT_STATIC, "ra": unix.RTPROT_RA, "dhcp": unix.RTPROT_DHCP,
		"zebra": unix.RTPROT_ZEBRA, "bird": unix.RTPROT_BIRD, "keepalived": 18, "babel": 42, "bgp": 186, "isis": 187, "ospf": 188, "rip": 189, "eigrp": 192, "": unix.RTPROT_BOOT}
	if n, ok := known[name]; ok {
		return netlink.RouteProtocol(n)
	}
	if n := number(name); n > 0 && n < 256 {
		return netlink.RouteProtocol(n)
	}
	return unix.RTPROT_STATIC
}

// wantedRoute returns what is compared of a recorded route.
func (s *space) wantedRoute(r iproute.Route) string {
	table, _ := s.tableNumber(r.Table)
	hops := r.NextHops
	if len(hops) == 0 {
		hops = []iproute.NextHop{{Via: r.Via, Device: r.Device, Weight: 1}}
	}
	var ways []string
	for _, hop := range hops {
		ways = append(ways, fmt.Sprint(hop.Via, " ", hop.Device, " ", hop.Weight))
	}
	return fmt.Sprint(r.To, " ", table, " ", r.Type, " ", r.Metric, " ", r.Source, " ", ways)
}

// foundRoute returns the same of a route of the kernel.
func (s *space) foundRoute(r netlink.Route, names map[int]string, recorded *netip.Prefix) string {
	to := prefixOf(r.Dst)
	if !to.IsValid() {
		to = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Family == unix.AF_INET6 {
			to = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	*recorded = to
	via := func(gw []byte, via netlink.Destination) netip.Addr {
		if v, ok := via.(*netlink.Via); ok && v != nil {
			return addrOf(v.Addr)
		}
		return addrOf(gw)
	}
	ways := []string{fmt.Sprint(via(r.Gw, r.Via), " ", names[r.LinkIndex], " ", 1)}
	if len(r.MultiPath) > 0 {
		ways = nil
		for _, hop := range r.MultiPath {
			ways = append(ways, fmt.Sprint(via(hop.Gw, hop.Via), " ", names[hop.LinkIndex], " ", hop.Hops+1))
		}
	}
	kind := ""
	if types := routeTypes(); r.Type < len(types) {
		kind = types[r.Type]
	}
	return fmt.Sprint(to, " ", r.Table, " ", kind, " ", uint32(r.Priority), " ", addrOf(r.Src), " ", ways)
}
