package restore

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// Native tunnels
//
// Cause: with a userspace datapath ovs-vswitchd itself builds a tunnel's outer
// headers. Without addresses, routes and neighbours traces end in "native tunnel
// routing failed", and no packet is received through a tunnel.
//
// Remedy: the addresses, routes and neighbours of bridges are added. A route gets its source
// by "src=", or where Open vSwitch has not got that (measured with OVS 3.1), from its device,
// which has one address of each family, the last that was added: the source of a route is
// added right before the route. With 3.5 the address that was added last is the source of its
// whole network, whatever "src=" said: the route for tunnels in a connected network comes last. A
// tunnel with options:local_ip also needs a kernel route to that address, which
// can't be added (measured with OVS 3.1); if the route to its remote end has that
// source address anyway, the edit removes the option. Nothing is done for a datapath
// that leaves tunnels to the kernel ("Tunnel push pop: No").
//
// Source: ovs-vswitchd(8), ovs/route/add.

// buildsHeaders reports whether the live node has tunnels and built their
// headers itself.
func buildsHeaders(sw *Switch, rec *Recorded) (bool, error) {
	hasTunnels := false
	for _, iface := range sw.interfaces() {
		hasTunnels = hasTunnels || node.IsTunnel(iface.Type)
	}
	if !hasTunnels {
		return false, nil
	}
	for _, bridge := range sw.Bridges {
		text, err := rec.bridgeText(bridge, workdir.RecordedFeatures)
		if err != nil {
			return false, err
		}
		if appctl.Features(text)["Tunnel push pop"] == "true" || text == "" && !bridge.hasKernelDatapath() {
			return true, nil
		}
	}
	return false, nil
}

// bridgeRoutes returns the recorded routes through bridges; native is false if
// the live node did not build headers itself.
func bridgeRoutes(sw *Switch, rec *Recorded) (list []appctl.Route, native, recorded bool, err error) {
	if native, err = buildsHeaders(sw, rec); err != nil || !native {
		return nil, false, false, err
	}
	text, err := rec.text(workdir.RecordedRoutes)
	if err != nil {
		return nil, false, false, err
	}
	seen := map[appctl.Route]bool{}
	for _, route := range appctl.Routes(text) {
		if !seen[route] && slices.ContainsFunc(sw.Bridges, func(bridge *Bridge) bool { return bridge.Name == route.Device }) {
			seen[route] = true
			list = append(list, route)
		}
	}
	return list, true, text != "", nil
}

// editLocalAddresses removes options:local_ip from tunnels whose route has that
// source address.
func editLocalAddresses(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	routes, native, _, err := bridgeRoutes(sw, rec)
	if err != nil || !native {
		return err
	}
	var changes []ovsdb.Change
	for _, iface := range sw.interfaces() {
		local, err := netip.ParseAddr(iface.Options["local_ip"])
		if !node.IsTunnel(iface.Type) || err != nil {
			continue
		}
		if !hasSource(routes, iface.Options["remote_ip"], local) || hasTwin(sw, iface) {
			outcome.Note(report.Approximated, "tunnel %q: no route of the replica has its local_ip %v as source: packets to it end in \"native tunnel routing failed\"", iface.Name, local)
			continue
		}
		delete(iface.Options, "local_ip")
		changes = append(changes, ovsdb.Update("Interface", iface.UUID, ovsdb.Columns{"options": iface.Options}))
		outcome.Note(report.Restored, "tunnel %q: its route has its local_ip %v as source; the option is removed, since it needs a route of the kernel", iface.Name, local)
	}
	return sw.db.Transact(ctx, changes...)
}

// hasSource reports whether packets to a remote address have the source address.
// Flows can set the remote address ("flow"); then all routes must have it.
func hasSource(routes []appctl.Route, remote string, source netip.Addr) bool {
	if to, err := netip.ParseAddr(remote); err == nil {
		best, found := appctl.RouteTo(routes, to)
		return found && best.Source == source
	}
	found := false
	for _, route := range routes {
		if route.Local || route.To.Addr().Is4() != source.Is4() {
			continue
		}
		if found = true; route.Source != source {
			return false
		}
	}
	return found
}

// hasTwin reports whether another tunnel differs from iface only in its local_ip.
func hasTwin(sw *Switch, iface *Interface) bool {
	for _, other := range sw.interfaces() {
		same := other != iface && other.Type == iface.Type
		for _, option := range []string{"remote_ip", "key", "in_key", "dst_port"} {
			same = same && other.Options[option] == iface.Options[option]
		}
		if same {
			return true
		}
	}
	return false
}

// restoreNativeTunnels adds addresses, routes and neighbours.
func restoreNativeTunnels(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	routes, native, recorded, err := bridgeRoutes(sw, rec)
	if err != nil || !native {
		return err
	}
	if !recorded {
		outcome.Note(report.Unknown, "no ovs/route/show was collected: tunnels have no routes")
	}
	if err := addRoutes(ctx, sw, routes, outcome); err != nil {
		return err
	}
	neighbours, err := rec.text(workdir.RecordedNeighbours)
	if err != nil {
		return err
	}
	if neighbours == "" {
		outcome.Note(report.Unknown, "no tnl/arp/show was collected: tunnels have no neighbours")
	}
	for _, neighbour := range appctl.Neighbours(neighbours) {
		_, err := sw.appctl(ctx, "tnl/neigh/set", neighbour.Bridge, neighbour.Address, neighbour.MAC)
		if err := noteFailure(ctx, outcome, err, "neighbour %s of %s", neighbour.Address, neighbour.Bridge); err != nil {
			return err
		}
	}
	ports, err := rec.text(workdir.RecordedTunnelPorts)
	if err != nil {
		return err
	}
	return compareTunnels(ctx, sw, tunnelState(routes, neighbours, ports), outcome)
}

// localRoutes returns the routes to the host's addresses, and one to the source address
// of each other route that has none: ovs-vswitchd knows only the addresses that the
// kernel routes, and an address may have been added to it.
func localRoutes(routes []appctl.Route) []appctl.Route {
	var local []appctl.Route
	for _, route := range routes {
		if route.Local {
			local = append(local, route)
		}
	}
	for _, r := range routes {
		known := func(route appctl.Route) bool { return route.To.Addr() == r.Source && route.Device == r.Device }
		if !r.Local && r.Source.IsValid() && !slices.ContainsFunc(local, known) {
			local = append(local, appctl.Route{To: netip.PrefixFrom(r.Source, r.Source.BitLen()), Device: r.Device, Local: true})
		}
	}
	return local
}

// interfaceAddress returns a local route's address with the prefix length of its
// network.
func interfaceAddress(routes []appctl.Route, local appctl.Route) netip.Prefix {
	bits := local.To.Bits()
	for _, route := range routes {
		if !route.Local && route.Device == local.Device && route.Gateway == "" && route.To.Contains(local.To.Addr()) {
			bits = min(bits, route.To.Bits())
		}
	}
	return netip.PrefixFrom(local.To.Addr(), bits)
}

// addRoutes adds the host's addresses, and routes: first those to connected networks, which
// contain the gateways. The addresses that are the source of routes come after the others,
// each followed by its routes, and the addresses of tunnels at the end.
func addRoutes(ctx context.Context, sw *Switch, routes []appctl.Route, outcome *report.Outcome) error {
	slices.SortStableFunc(routes, func(a, b appctl.Route) int { return min(len(a.Gateway), 1) - min(len(b.Gateway), 1) })
	remaining := slices.DeleteFunc(slices.Clone(routes), func(route appctl.Route) bool { return route.Local })
	isSource := func(l appctl.Route) func(appctl.Route) bool {
		return func(route appctl.Route) bool { return route.Device == l.Device && route.Source == l.To.Addr() }
	}
	locals := localRoutes(routes)
	slices.SortStableFunc(locals, func(a, b appctl.Route) int { return rankOf(sw, routes, a) - rankOf(sw, routes, b) })
	for _, l := range locals {
		if err := addAddress(ctx, sw, routes, l, outcome); err != nil {
			return err
		}
		for _, route := range remaining {
			if isSource(l)(route) {
				if err := addRoute(ctx, sw, route, outcome); err != nil {
					return err
				}
			}
		}
		remaining = slices.DeleteFunc(remaining, isSource(l))
	}
	for _, route := range remaining {
		if err := addRoute(ctx, sw, route, outcome); err != nil {
			return err
		}
	}
	return nil
}

// rankOf returns the place of an address of the host in the order in which addresses are
// added: the higher, the later.
func rankOf(sw *Switch, routes []appctl.Route, local appctl.Route) int {
	rank := 0
	for _, route := range routes {
		switch {
		case route.Local || route.Device != local.Device || route.Source != local.To.Addr():
		case route.Gateway == "":
			rank = 2
		default:
			rank = max(rank, 1)
		}
	}
	for _, iface := range sw.interfaces() {
		remote, err := netip.ParseAddr(iface.Options["remote_ip"])
		best, found := appctl.RouteTo(routes, remote)
		if node.IsTunnel(iface.Type) && err == nil && found && best.Source == local.To.Addr() {
			return rank + 3
		}
	}
	return rank
}

// addAddress adds an address of the host to its device.
func addAddress(ctx context.Context, sw *Switch, routes []appctl.Route, local appctl.Route, outcome *report.Outcome) error {
	command := "netdev-dummy/ip6addr"
	if local.To.Addr().Is4() {
		command = "netdev-dummy/ip4addr"
	}
	_, err := sw.appctl(ctx, command, local.Device, interfaceAddress(routes, local).String())
	return noteFailure(ctx, outcome, err, "address %v of %s", local.To.Addr(), local.Device)
}

// addRoute adds a route, with its source where the release of Open vSwitch takes one.
func addRoute(ctx context.Context, sw *Switch, route appctl.Route, outcome *report.Outcome) error {
	args := []string{"ovs/route/add", route.To.String(), route.Device}
	if route.Gateway != "" {
		args = append(args, route.Gateway)
	}
	if route.Mark != "" {
		args = append(args, "pkt_mark="+route.Mark)
	}
	if route.Source.IsValid() {
		if _, err := sw.appctl(ctx, append(slices.Clone(args), "src="+route.Source.String())...); err == nil {
			return nil
		}
	}
	_, err := sw.appctl(ctx, args...)
	return noteFailure(ctx, outcome, err, "route to %v by %s", route.To, route.Device)
}

// compareTunnels reports what the replica lacks of the live state. Additional routes of
// the replica belong to its own host.
func compareTunnels(ctx context.Context, sw *Switch, live []string, outcome *report.Outcome) error {
	var missing []string
	err := retryUntil(ctx, func() (bool, error) {
		have, err := runningTunnelState(ctx, sw)
		missing = slices.DeleteFunc(slices.Clone(live), func(entry string) bool { return have[entry] })
		return len(missing) == 0, err
	})
	for _, entry := range missing {
		outcome.Note(report.Failed, "the replica has no %s", entry)
	}
	if err == nil && len(live) > 0 {
		outcome.Note(report.Restored, "")
	}
	return err
}

func runningTunnelState(ctx context.Context, sw *Switch) (map[string]bool, error) {
	var texts []string
	for _, command := range [][]string{{"ovs/route/show"}, {"tnl/arp/show"}, {"tnl/ports/show", "-v"}} {
		out, err := sw.appctl(ctx, command...)
		if err != nil {
			return nil, err
		}
		texts = append(texts, out)
	}
	state := map[string]bool{}
	for _, entry := range tunnelState(appctl.Routes(texts[0]), texts[1], texts[2]) {
		state[entry] = true
	}
	return state, nil
}

// tunnelState describes routes, tnl/arp/show and tnl/ports/show, one entry per line.
func tunnelState(routes []appctl.Route, neighbours, ports string) []string {
	var list []string
	for _, route := range routes {
		if !route.Local {
			list = append(list, "route "+route.String())
		}
	}
	for _, neighbour := range appctl.Neighbours(neighbours) {
		list = append(list, "neighbour "+strings.Join([]string{neighbour.Address, neighbour.MAC, neighbour.Bridge}, " "))
	}
	for _, port := range appctl.TunnelPorts(ports) {
		list = append(list, "port "+port)
	}
	return list
}
