package restore

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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
// whole network, whatever "src=" said: that of tunnels in a connected network comes last. A
// tunnel with options:local_ip also needs a kernel route to that address, which
// can't be added (measured with OVS 3.1); if the route to its remote end has that
// source address anyway, the edit removes the option. Nothing is done for a datapath
// that leaves tunnels to the kernel ("Tunnel push pop: No").
//
// Source: ovs-vswitchd(8), ovs/route/add.

// buildsHeaders reports whether the live node has tunnels and built their
// headers itself.
func buildsHeaders(s *Switch, rec *Recorded) (bool, error) {
	hasTunnels := false
	for _, i := range s.interfaces() {
		hasTunnels = hasTunnels || isTunnel(i.Type)
	}
	if !hasTunnels {
		return false, nil
	}
	for _, b := range s.Bridges {
		text, err := rec.bridgeText(b, workdir.RecordedFeatures)
		if err != nil {
			return false, err
		}
		if appctl.Features(text)["Tunnel push pop"] == "true" || text == "" && !b.hasKernelDatapath() {
			return true, nil
		}
	}
	return false, nil
}

// bridgeRoutes returns the recorded routes through bridges; native is false if
// the live node did not build headers itself.
func bridgeRoutes(s *Switch, rec *Recorded) (list []appctl.Route, native, recorded bool, err error) {
	if native, err = buildsHeaders(s, rec); err != nil || !native {
		return nil, false, false, err
	}
	text, err := rec.text(workdir.RecordedRoutes)
	if err != nil {
		return nil, false, false, err
	}
	seen := map[appctl.Route]bool{}
	for _, r := range appctl.Routes(text) {
		if !seen[r] && slices.ContainsFunc(s.Bridges, func(b *Bridge) bool { return b.Name == r.Device }) {
			seen[r] = true
			list = append(list, r)
		}
	}
	return list, true, text != "", nil
}

// editLocalAddresses removes options:local_ip from tunnels whose route has that
// source address.
func editLocalAddresses(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	routes, native, _, err := bridgeRoutes(s, rec)
	if err != nil || !native {
		return err
	}
	var changes []ovsdb.Change
	for _, i := range s.interfaces() {
		local, err := netip.ParseAddr(i.Options["local_ip"])
		if !isTunnel(i.Type) || err != nil {
			continue
		}
		if !hasSource(routes, i.Options["remote_ip"], local) || hasTwin(s, i) {
			o.Note(report.Approximated, "tunnel %q: no route of the replica has its local_ip %v as source: packets to it end in \"native tunnel routing failed\"", i.Name, local)
			continue
		}
		delete(i.Options, "local_ip")
		changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"options": i.Options}))
		o.Note(report.Restored, "tunnel %q: its route has its local_ip %v as source; the option is removed, since it needs a route of the kernel", i.Name, local)
	}
	return s.db.Transact(ctx, changes...)
}

// hasSource reports whether packets to a remote address have the source address.
// Flows can set the remote address ("flow"); then all routes must have it.
func hasSource(routes []appctl.Route, remote string, source netip.Addr) bool {
	if to, err := netip.ParseAddr(remote); err == nil {
		best, found := appctl.RouteTo(routes, to)
		return found && best.Source == source
	}
	found := false
	for _, r := range routes {
		if r.Local || r.To.Addr().Is4() != source.Is4() {
			continue
		}
		if found = true; r.Source != source {
			return false
		}
	}
	return found
}

// hasTwin reports whether another tunnel differs from i only in its local_ip.
func hasTwin(s *Switch, i *Interface) bool {
	for _, other := range s.interfaces() {
		same := other != i && other.Type == i.Type
		for _, option := range []string{"remote_ip", "key", "in_key", "dst_port"} {
			same = same && other.Options[option] == i.Options[option]
		}
		if same {
			return true
		}
	}
	return false
}

// restoreNativeTunnels adds addresses, routes and neighbours.
func restoreNativeTunnels(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	routes, native, recorded, err := bridgeRoutes(s, rec)
	if err != nil || !native {
		return err
	}
	if !recorded {
		o.Note(report.Unknown, "no ovs/route/show was collected: tunnels have no routes")
	}
	if err := addRoutes(ctx, s, routes, o); err != nil {
		return err
	}
	neighbours, err := rec.text(workdir.RecordedNeighbours)
	if err != nil {
		return err
	}
	if neighbours == "" {
		o.Note(report.Unknown, "no tnl/arp/show was collected: tunnels have no neighbours")
	}
	for _, e := range appctl.Neighbours(neighbours) {
		_, err := s.appctl(ctx, "tnl/neigh/set", e.Bridge, e.Address, e.MAC)
		if err := noteFailure(ctx, o, err, "neighbour %s of %s", e.Address, e.Bridge); err != nil {
			return err
		}
	}
	ports, err := rec.text(workdir.RecordedTunnelPorts)
	if err != nil {
		return err
	}
	return compareTunnels(ctx, s, tunnelState(routes, neighbours, ports), o)
}

// localRoutes returns the routes to the host's addresses, and one to the source address
// of each other route that has none: ovs-vswitchd knows only the addresses that the
// kernel routes, and an address may have been added to it.
func localRoutes(routes []appctl.Route) []appctl.Route {
	var local []appctl.Route
	for _, r := range routes {
		if r.Local {
			local = append(local, r)
		}
	}
	for _, r := range routes {
		known := func(l appctl.Route) bool { return l.To.Addr() == r.Source && l.Device == r.Device }
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
	for _, r := range routes {
		if !r.Local && r.Device == local.Device && r.Gateway == "" && r.To.Contains(local.To.Addr()) {
			bits = min(bits, r.To.Bits())
		}
	}
	return netip.PrefixFrom(local.To.Addr(), bits)
}

// addRoutes adds the host's addresses, and routes: first those to connected networks, which
// contain the gateways. The addresses that are the source of routes come after the others,
// each followed by its routes, and the addresses of tunnels at the end.
func addRoutes(ctx context.Context, s *Switch, routes []appctl.Route, o *report.Outcome) error {
	slices.SortStableFunc(routes, func(a, b appctl.Route) int { return min(len(a.Gateway), 1) - min(len(b.Gateway), 1) })
	remaining := slices.DeleteFunc(slices.Clone(routes), func(r appctl.Route) bool { return r.Local })
	isSource := func(l appctl.Route) func(appctl.Route) bool {
		return func(r appctl.Route) bool { return r.Device == l.Device && r.Source == l.To.Addr() }
	}
	locals := localRoutes(routes)
	slices.SortStableFunc(locals, func(a, b appctl.Route) int { return rankOf(s, routes, a) - rankOf(s, routes, b) })
	for _, l := range locals {
		if err := addAddress(ctx, s, routes, l, o); err != nil {
			return err
		}
		for _, r := range remaining {
			if isSource(l)(r) {
				if err := addRoute(ctx, s, r, o); err != nil {
					return err
				}
			}
		}
		remaining = slices.DeleteFunc(remaining, isSource(l))
	}
	for _, r := range remaining {
		if err := addRoute(ctx, s, r, o); err != nil {
			return err
		}
	}
	return nil
}

// rankOf returns the place of an address of the host in the order in which addresses are
// added: the higher, the later.
func rankOf(s *Switch, routes []appctl.Route, local appctl.Route) int {
	rank := 0
	for _, r := range routes {
		switch {
		case r.Local || r.Device != local.Device || r.Source != local.To.Addr():
		case r.Gateway == "":
			rank = 2
		default:
			rank = max(rank, 1)
		}
	}
	for _, i := range s.interfaces() {
		remote, err := netip.ParseAddr(i.Options["remote_ip"])
		best, found := appctl.RouteTo(routes, remote)
		if isTunnel(i.Type) && err == nil && found && best.Source == local.To.Addr() {
			return rank + 3
		}
	}
	return rank
}

// addAddress adds an address of the host to its device.
func addAddress(ctx context.Context, s *Switch, routes []appctl.Route, local appctl.Route, o *report.Outcome) error {
	command := "netdev-dummy/ip6addr"
	if local.To.Addr().Is4() {
		command = "netdev-dummy/ip4addr"
	}
	_, err := s.appctl(ctx, command, local.Device, interfaceAddress(routes, local).String())
	return noteFailure(ctx, o, err, "address %v of %s", local.To.Addr(), local.Device)
}

// addRoute adds a route, with its source where the release of Open vSwitch takes one.
func addRoute(ctx context.Context, s *Switch, r appctl.Route, o *report.Outcome) error {
	args := []string{"ovs/route/add", r.To.String(), r.Device}
	if r.Gateway != "" {
		args = append(args, r.Gateway)
	}
	if r.Mark != "" {
		args = append(args, "pkt_mark="+r.Mark)
	}
	if r.Source.IsValid() {
		if _, err := s.appctl(ctx, append(slices.Clone(args), "src="+r.Source.String())...); err == nil {
			return nil
		}
	}
	_, err := s.appctl(ctx, args...)
	return noteFailure(ctx, o, err, "route to %v by %s", r.To, r.Device)
}

// compareTunnels reports what the replica lacks of the live state. Additional routes of
// the replica are those of its own host.
func compareTunnels(ctx context.Context, s *Switch, live []string, o *report.Outcome) error {
	var missing []string
	err := until(ctx, func() (bool, error) {
		have, err := runningTunnelState(ctx, s)
		missing = slices.DeleteFunc(slices.Clone(live), func(entry string) bool { return have[entry] })
		return len(missing) == 0, err
	})
	for _, entry := range missing {
		o.Note(report.Failed, "the replica has no %s", entry)
	}
	if err == nil && len(live) > 0 {
		o.Note(report.Restored, "")
	}
	return err
}

func runningTunnelState(ctx context.Context, s *Switch) (map[string]bool, error) {
	var texts []string
	for _, command := range [][]string{{"ovs/route/show"}, {"tnl/arp/show"}, {"tnl/ports/show", "-v"}} {
		out, err := s.appctl(ctx, command...)
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
	for _, r := range routes {
		if !r.Local {
			list = append(list, "route "+r.String())
		}
	}
	for _, e := range appctl.Neighbours(neighbours) {
		list = append(list, "neighbour "+strings.Join([]string{e.Address, e.MAC, e.Bridge}, " "))
	}
	for _, port := range appctl.TunnelPorts(ports) {
		list = append(list, "port "+port)
	}
	return list
}
