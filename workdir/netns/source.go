package netns

import (
	"cmp"
	"net/netip"

	"ovs-offline/internal/iproute"
)

// SourceOf returns the address from which a process that names none sends to another address: of the route in the
// tables local and main, or else the first one of its device. ok is false if no route leads there.
func (n Namespace) SourceOf(to netip.Addr) (source netip.Addr, ok bool) {
	for _, link := range n.Links {
		for _, assigned := range link.Assigned {
			if assigned.Network.Addr() == to {
				return to, true
			}
		}
	}
	best := iproute.Route{}
	for _, route := range n.Routes {
		if route.Table != iproute.Main || route.Type != iproute.Unicast || !route.To.Contains(to) {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(route.To.Bits(), best.To.Bits()), cmp.Compare(best.Metric, route.Metric)) > 0 {
			best, ok = route, true
		}
	}
	if best.Source.IsValid() {
		return best.Source, true
	}
	link, found := n.Link(best.Device)
	if !ok || !found {
		return source, false
	}
	for _, assigned := range link.Assigned {
		near := !best.Via.IsValid() || assigned.Network.Contains(best.Via)
		if addr := assigned.Network.Addr(); near && addr.Is4() == to.Is4() && assigned.Scope != "link" {
			return addr, true
		}
	}
	return source, false
}
