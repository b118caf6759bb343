package host

import (
	"net/netip"
	"slices"

	"ovs-offline/internal/iproute"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
)

// Underlay is the device by which a node sends the packets of a tunnel.
type Underlay struct {
	Device string // "" if no route and no address was recorded
	Port   *Port  // the device as a port of a bridge, nil for another device
	// MTU is the least of the MTUs of the route, of the device, and of the physical port by
	// which a bridge sends what its own port sends; 0 if not recorded.
	MTU int
}

// readUnderlay reads the recorded routes and devices of the kernel. Ports whose MTU the OVS
// database lacks have the MTU of their device.
func (r *reader) readUnderlay() error {
	routes, _, err := r.dir.CollectedText(r.dir.Recorded(workdir.RecordedRoutes))
	if err != nil {
		return err
	}
	kernel, _, err := r.dir.CollectedText(r.dir.Recorded(workdir.RecordedKernelRoutes))
	if err != nil {
		return err
	}
	links, _, err := r.dir.CollectedText(r.dir.Recorded(workdir.RecordedLinks))
	if err != nil {
		return err
	}
	r.routes, r.kernel, r.links = appctl.Routes(routes), iproute.Routes(kernel), iproute.Links(links)
	for _, link := range r.links {
		if port, ok := r.ports[link.Name]; ok && port.MTU == 0 {
			port.MTU = link.MTU
		}
	}
	return nil
}

// Underlay returns the device by which the node sent the packets of a tunnel from one of its
// addresses to a peer: the device of the recorded route, or else the device with the address.
func (h *Host) Underlay(local, remote netip.Addr) Underlay {
	route, ok := h.routeTo(remote)
	i := slices.IndexFunc(h.links, func(link iproute.Link) bool {
		return link.Name == route.Device || !ok && slices.Contains(link.Addresses, local)
	})
	found := Underlay{Device: route.Device}
	if i >= 0 {
		found.Device, found.MTU = h.links[i].Name, h.links[i].MTU
	}
	if found.Port = h.ports[found.Device]; found.Port != nil && found.MTU == 0 {
		found.MTU = found.Port.MTU
	}
	for _, limit := range []int{route.MTU, h.uplinkMTU(found.Port)} {
		if limit > 0 && (found.MTU == 0 || limit < found.MTU) {
			found.MTU = limit
		}
	}
	return found
}

// uplinkMTU returns the largest MTU of the physical ports of a bridge, given the bridge's own
// port; 0 if none is known.
func (h *Host) uplinkMTU(port *Port) int {
	largest := 0
	for _, uplink := range h.ports {
		if port != nil && port.Name == port.Bridge && uplink.Bridge == port.Bridge && uplink.isDevice() {
			largest = max(largest, uplink.MTU)
		}
	}
	return largest
}

// routeTo returns the route to an address: the kernel's, or else ovs-vswitchd's, which has the
// routes of the kernel without their MTUs.
func (h *Host) routeTo(to netip.Addr) (best iproute.Route, ok bool) {
	candidates := slices.Clone(h.kernel)
	if candidate, found := appctl.RouteTo(h.routes, to); found {
		candidates = append(candidates, iproute.Route{To: candidate.To, Device: candidate.Device})
	}
	for _, candidate := range candidates {
		if candidate.To.Contains(to) && (!ok || candidate.To.Bits() > best.To.Bits()) {
			best, ok = candidate, true
		}
	}
	return best, ok
}
