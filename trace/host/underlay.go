package host

import (
	"net/netip"
	"slices"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/iproute"
	"ovs-offline/internal/workdir"
)

// Underlay is the device by which a node sends the packets of a tunnel.
type Underlay struct {
	Device string // "" if no route and no address was recorded
	Port   *Port  // the device as a port of a bridge, nil for another device
	// MTU is the least of those of the route, of the device, and of the physical port by
	// which a bridge sends what its own port sends; 0 if not recorded.
	MTU int
}

// readUnderlay reads the recorded routes and devices of the kernel. Ports whose MTU the OVS
// database lacks have that of their device.
func (h *Host) readUnderlay(wd *workdir.Dir) error {
	routes, err := recordedText(wd.Recorded(workdir.RecordedRoutes))
	if err != nil {
		return err
	}
	kernel, err := recordedText(wd.Recorded(workdir.RecordedKernelRoutes))
	if err != nil {
		return err
	}
	links, err := recordedText(wd.Recorded(workdir.RecordedLinks))
	if err != nil {
		return err
	}
	h.routes, h.kernel, h.links = appctl.Routes(routes), iproute.Routes(kernel), iproute.Links(links)
	for _, l := range h.links {
		if p, ok := h.ports[l.Name]; ok && p.MTU == 0 {
			p.MTU = l.MTU
		}
	}
	return nil
}

// Underlay returns the device by which the node sent the packets of a tunnel from one of its
// addresses to a peer: that of the route as recorded, or else the one with the address.
func (h *Host) Underlay(local, remote netip.Addr) Underlay {
	route, ok := h.routeTo(remote)
	i := slices.IndexFunc(h.links, func(l iproute.Link) bool {
		return l.Name == route.Device || !ok && slices.Contains(l.Addresses, local)
	})
	u := Underlay{Device: route.Device}
	if i >= 0 {
		u.Device, u.MTU = h.links[i].Name, h.links[i].MTU
	}
	if u.Port = h.ports[u.Device]; u.Port != nil && u.MTU == 0 {
		u.MTU = u.Port.MTU
	}
	for _, limit := range []int{route.MTU, h.uplinkMTU(u.Port)} {
		if limit > 0 && (u.MTU == 0 || limit < u.MTU) {
			u.MTU = limit
		}
	}
	return u
}

// uplinkMTU returns the largest MTU of the physical ports of a bridge whose own port p is, 0
// if none is known.
func (h *Host) uplinkMTU(p *Port) int {
	most := 0
	for _, up := range h.ports {
		if p != nil && p.Name == p.Bridge && up.Bridge == p.Bridge && up.isDevice() {
			most = max(most, up.MTU)
		}
	}
	return most
}

// routeTo returns the route to an address: that of the kernel, or else that of ovs-vswitchd,
// which has the kernel's without their MTUs.
func (h *Host) routeTo(to netip.Addr) (best iproute.Route, ok bool) {
	candidates := slices.Clone(h.kernel)
	if r, found := appctl.RouteTo(h.routes, to); found {
		candidates = append(candidates, iproute.Route{To: r.To, Device: r.Device})
	}
	for _, r := range candidates {
		if r.To.Contains(to) && (!ok || r.To.Bits() > best.To.Bits()) {
			best, ok = r, true
		}
	}
	return best, ok
}
