package restore

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Native tunnels
//
// Cause: with a userspace datapath ovs-vswitchd itself builds a tunnel's outer
// headers, from the addresses of bridges, the host's routes and the neighbours
// that it has heard; a replica has none ("native tunnel routing failed"), and
// takes no packet for a tunnel's.
//
// Remedy: netdev-dummy/ip4addr and ip6addr give the bridges their addresses,
// ovs/route/add the routes that go out by a bridge, tnl/neigh/set the
// neighbours. A tunnel with options:local_ip asks for a route of the kernel to
// that address as well, which nothing can add (measured, OVS 3.1); where the way
// to its remote end has that source address anyway, the option is taken out.
//
// Sources: ovs-vswitchd(8) (ovs/route/add), ovs/route/show, tnl/arp/show,
// tnl/ports/show -v. Nothing is done for a datapath that leaves tunnels to the
// kernel ("Tunnel push pop: No").

// route is an entry of ovs/route/show.
type route struct {
	to    netip.Prefix
	mark  string
	dev   string
	via   string
	from  netip.Addr
	local bool
}

var routeLine = regexp.MustCompile(`^(?:Cached|User): (\S+)(?: MARK (\S+))? dev (\S+)(?: GW (\S+))?(?: SRC (\S+))?( local)?$`)

// routes reads ovs/route/show; a host's own prefix length is not printed.
func routes(text string) []route {
	var list []route
	for line := range strings.Lines(text) {
		m := routeLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		to, err := netip.ParsePrefix(m[1])
		if address, problem := netip.ParseAddr(m[1]); err != nil && problem == nil {
			to, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			continue
		}
		from, _ := netip.ParseAddr(m[5]) // older versions don't print it
		list = append(list, route{to: to, mark: m[2], dev: m[3], via: m[4], from: from, local: m[6] != ""})
	}
	return list
}

// String is how a route is compared and told.
func (r route) String() string {
	return fmt.Sprintf("%v mark %q by %s via %q from %v", r.to, r.mark, r.dev, r.via, r.from)
}

// buildsHeaders tells whether the live node built its tunnels' headers itself.
func (n *Node) buildsHeaders() (bool, error) {
	for _, b := range n.Bridges {
		text, err := n.text(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedFeatures))
		if err != nil {
			return false, err
		}
		if strings.Contains(text, "Tunnel push pop: Yes") || text == "" && b.DatapathType != "" && b.DatapathType != "system" {
			return n.hasTunnels(), nil
		}
	}
	return false, nil
}

func (n *Node) hasTunnels() bool {
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			if isTunnel(i.Type) {
				return true
			}
		}
	}
	return false
}

// bridgeRoutes are the recorded routes that go out by a bridge.
func (n *Node) bridgeRoutes() (list []route, recorded bool, err error) {
	text, err := n.text(n.Workdir.Recorded(workdir.RecordedRoutes))
	if err != nil {
		return nil, false, err
	}
	seen := map[string]bool{}
	for _, r := range routes(text) {
		for _, b := range n.Bridges {
			if key := r.String() + strconv.FormatBool(r.local); b.Name == r.dev && !seen[key] {
				seen[key] = true
				list = append(list, r)
			}
		}
	}
	return list, text != "", nil
}

// editLocalAddresses takes options:local_ip from tunnels that get that source
// address without it.
func editLocalAddresses(ctx context.Context, n *Node, o *report.Outcome) error {
	native, err := n.buildsHeaders()
	if err != nil || !native {
		return err
	}
	all, _, err := n.bridgeRoutes()
	if err != nil {
		return err
	}
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			local, err := netip.ParseAddr(i.Options["local_ip"])
			if !isTunnel(i.Type) || err != nil {
				continue
			}
			if !sourceIs(all, i.Options["remote_ip"], local) || n.twin(i) {
				o.Note(report.Approximated, "tunnel %q: no route of the replica gives it its local_ip %v: what is sent by it ends in \"native tunnel routing failed\"", i.Name, local)
				continue
			}
			delete(i.Options, "local_ip")
			changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"options": i.Options}))
			o.Note(report.Restored, "tunnel %q: its route gives it its local_ip %v; the option is taken out, since it asks for a route of the kernel", i.Name, local)
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// sourceIs tells whether packets to remote have a source address. A remote that
// flows set ("flow") may be any of the same family.
func sourceIs(all []route, remote string, source netip.Addr) bool {
	to, err := netip.ParseAddr(remote)
	if err == nil {
		best, found := wayTo(all, to)
		return found && best.from == source
	}
	some := false
	for _, r := range all {
		if r.local || r.to.Addr().Is4() != source.Is4() {
			continue
		}
		if some = true; r.from != source {
			return false
		}
	}
	return some
}

// wayTo is the most specific route to an address.
func wayTo(all []route, to netip.Addr) (best route, found bool) {
	for _, r := range all {
		if !r.local && r.mark == "" && r.to.Contains(to) && (!found || r.to.Bits() > best.to.Bits()) {
			best, found = r, true
		}
	}
	return best, found
}

// twin tells whether there is another tunnel that differs in its local_ip alone.
func (n *Node) twin(i *Interface) bool {
	for _, b := range n.Bridges {
		for _, other := range b.Interfaces() {
			if other != i && other.Type == i.Type && other.Options["remote_ip"] == i.Options["remote_ip"] &&
				other.Options["key"] == i.Options["key"] && other.Options["in_key"] == i.Options["in_key"] && other.Options["dst_port"] == i.Options["dst_port"] {
				return true
			}
		}
	}
	return false
}

// restoreNativeTunnels gives the replica addresses, routes and neighbours.
func restoreNativeTunnels(ctx context.Context, n *Node, o *report.Outcome) error {
	native, err := n.buildsHeaders()
	if err != nil || !native {
		return err
	}
	all, recorded, err := n.bridgeRoutes()
	if err != nil {
		return err
	}
	if !recorded {
		o.Note(report.Unknown, "no ovs/route/show was collected: tunnels have no way out")
	}
	for _, r := range all {
		if !r.local {
			continue
		}
		command := "netdev-dummy/ip6addr"
		if r.to.Addr().Is4() {
			command = "netdev-dummy/ip4addr"
		}
		if _, err := n.appctl(ctx, command, r.dev, connected(all, r).String()); err != nil {
			o.Note(report.Failed, "address %v of %s: %v", r.to.Addr(), r.dev, err)
		}
	}
	if err := n.addRoutes(ctx, all, o); err != nil {
		return err
	}
	if err := n.addNeighbours(ctx, o); err != nil {
		return err
	}
	return n.compareTunnels(ctx, all, o)
}

// connected is the address of a local entry, with the length of the network it is in.
func connected(all []route, local route) netip.Prefix {
	bits := local.to.Bits()
	for _, r := range all {
		if !r.local && r.dev == local.dev && r.via == "" && r.to.Contains(local.to.Addr()) && r.to.Bits() < bits {
			bits = r.to.Bits()
		}
	}
	return netip.PrefixFrom(local.to.Addr(), bits)
}

// addRoutes adds those to connected networks first: the others go through them.
func (n *Node) addRoutes(ctx context.Context, all []route, o *report.Outcome) error {
	sort.SliceStable(all, func(i, j int) bool { return all[i].via == "" && all[j].via != "" })
	for _, r := range all {
		if r.local {
			continue
		}
		args := []string{"ovs/route/add", r.to.String(), r.dev}
		if r.via != "" {
			args = append(args, r.via)
		}
		if r.mark != "" {
			args = append(args, "pkt_mark="+r.mark)
		}
		if _, err := n.appctl(ctx, args...); err != nil {
			o.Note(report.Failed, "route to %v by %s: %v", r.to, r.dev, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// neighbour matches a line of tnl/arp/show.
var neighbour = regexp.MustCompile(`^([0-9a-fA-F.:]+)\s+([0-9a-f]{2}(?::[0-9a-f]{2}){5})\s+(\S.*)$`)

func neighbours(text string) [][]string {
	var list [][]string
	for line := range strings.Lines(text) {
		if m := neighbour.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			list = append(list, m[1:])
		}
	}
	return list
}

func (n *Node) addNeighbours(ctx context.Context, o *report.Outcome) error {
	text, err := n.text(n.Workdir.Recorded(workdir.RecordedNeighbours))
	if err != nil {
		return err
	}
	if text == "" {
		o.Note(report.Unknown, "no tnl/arp/show was collected: tunnels know no neighbour")
	}
	for _, entry := range neighbours(text) {
		if _, err := n.appctl(ctx, "tnl/neigh/set", entry[2], entry[0], entry[1]); err != nil {
			o.Note(report.Failed, "neighbour %s of %s: %v", entry[0], entry[2], err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// compareTunnels reads back. Only what the replica lacks is told: its own
// host's part of a route table is nobody's concern.
func (n *Node) compareTunnels(ctx context.Context, live []route, o *report.Outcome) error {
	var want []string
	for _, r := range live {
		if !r.local {
			want = append(want, "route "+r.String())
		}
	}
	for _, c := range []struct{ recorded, what string }{{workdir.RecordedNeighbours, "neighbour "}, {workdir.RecordedTunnelPorts, "port "}} {
		text, err := n.text(n.Workdir.Recorded(c.recorded))
		if err != nil {
			return err
		}
		want = append(want, tunnelFacts(c.what, text)...)
	}
	var lacking []string
	err := n.until(ctx, func() (bool, error) {
		have, err := n.tunnelState(ctx)
		lacking = nil
		for _, w := range want {
			if !have[w] {
				lacking = append(lacking, w)
			}
		}
		return len(lacking) == 0, err
	})
	for _, l := range lacking {
		o.Note(report.Failed, "the replica has no %s", l)
	}
	if err == nil && len(want) > 0 {
		o.Note(report.Restored, "")
	}
	return err
}

// datapathNumber is a tunnel's port in the datapath, which ovs-vswitchd chooses.
var datapathNumber = regexp.MustCompile(`^(\S+) \(\d+\)`)

// tunnelFacts are the lines of tnl/arp/show or tnl/ports/show that are compared.
func tunnelFacts(what, text string) []string {
	var list []string
	if what == "neighbour " {
		for _, entry := range neighbours(text) {
			list = append(list, what+strings.Join(entry, " "))
		}
		return list
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); datapathNumber.MatchString(line) {
			list = append(list, what+datapathNumber.ReplaceAllString(line, "$1"))
		}
	}
	return list
}

// tunnelState is what the replica has, as compareTunnels spells it.
func (n *Node) tunnelState(ctx context.Context) (map[string]bool, error) {
	have := map[string]bool{}
	for _, c := range [][]string{{"neighbour ", "tnl/arp/show"}, {"port ", "tnl/ports/show", "-v"}} {
		out, err := n.appctl(ctx, c[1:]...)
		if err != nil {
			return nil, err
		}
		for _, fact := range tunnelFacts(c[0], string(out)) {
			have[fact] = true
		}
	}
	out, err := n.appctl(ctx, "ovs/route/show")
	for _, r := range routes(string(out)) {
		have["route "+r.String()] = true
	}
	return have, err
}
