//go:build linux

package keeper

import (
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
)

// addNeighbours adds the neighbours whose MAC was recorded, for good: a frame to one of them goes out at once. The
// others are asked for by a frame that needs them, as on the node.
func (s *space) addNeighbours() {
	known := slices.DeleteFunc(slices.Clone(s.recorded.Neighbours), func(n iproute.Neighbour) bool { return n.MAC == "" || n.State == "NOARP" })
	s.report.Record(report.Neighbours, len(known))
	if len(known) > maxNeighbours {
		s.report.RejectUnnamed(report.Neighbours, len(known)-maxNeighbours, "only the first %d neighbours are restored", maxNeighbours)
		known = known[:maxNeighbours]
	}
	for name, value := range map[string]string{"gc_thresh1": "100000", "gc_thresh2": "100000", "gc_thresh3": "100000"} {
		_ = writeSetting("net.ipv4.neigh.default."+name, value)
	}
	for _, n := range known {
		text := n.Address.String() + " dev " + n.Device + " lladdr " + n.MAC
		d := s.device(n.Device)
		mac, err := net.ParseMAC(n.MAC)
		if err != nil || d == nil {
			s.report.Reject(report.Neighbours, text, "there is no such device, or no such MAC")
			continue
		}
		if err := s.handle.NeighSet(&netlink.Neigh{LinkIndex: d.link.Attrs().Index, Family: family(n.Address), State: netlink.NUD_PERMANENT, IP: n.Address.AsSlice(), HardwareAddr: mac}); err != nil {
			s.report.Reject(report.Neighbours, text, "%v", err)
		}
	}
}

// forgetNeighbours deletes the neighbours that the frames of a question made known, or asked for.
func (s *space) forgetNeighbours() {
	families := []int{unix.AF_INET, unix.AF_INET6}
	if slices.ContainsFunc(s.devices, func(d *device) bool { return d.recorded.Kind == "bridge" && d.fd < 0 }) {
		families = append(families, unix.AF_BRIDGE) // the addresses that bridges learned
	}
	for _, family := range families {
		list, err := s.handle.NeighList(0, family)
		if err != nil {
			continue
		}
		for _, n := range list {
			if n.State&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) != 0 {
				continue
			}
			if family == unix.AF_BRIDGE {
				n.Family, n.Flags = unix.AF_BRIDGE, netlink.NTF_MASTER
			}
			_ = s.handle.NeighDel(&n)
		}
	}
}
