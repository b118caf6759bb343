//go:build linux

package keeper

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/report"
)

// readBack reads devices, addresses, routes and neighbours back and compares them with the recorded ones.
func (s *space) readBack() {
	names := map[int]string{}
	links, err := s.handle.LinkList()
	if err != nil {
		s.report.Remark("the devices can't be read back: %v", err)
		return
	}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	s.readDevices(links, names)
	s.readAddresses(names)
	s.readRoutes(names)
	s.readNeighbours(names)
}

// readDevices compares MAC, MTU, state and master.
func (s *space) readDevices(links []netlink.Link, names map[int]string) {
	for _, d := range s.devices {
		i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == d.recorded.Name })
		if d.recorded.Kind == "different" {
			continue // named before
		}
		if i < 0 {
			s.report.Reject(report.Devices, d.recorded.Name, "it is gone")
			continue
		}
		found := links[i].Attrs()
		mac, up := found.HardwareAddr.String(), found.RawFlags&unix.IFF_UP != 0
		switch {
		case d.recorded.Name != loopback && d.recorded.MAC != "" && mac != d.recorded.MAC:
			s.report.Differ(report.Devices, d.recorded.Name, "its MAC is %s, not %s", mac, d.recorded.MAC)
		case up != d.recorded.Up:
			s.report.Differ(report.Devices, d.recorded.Name, "it is up: %t, and was: %t", up, d.recorded.Up)
		case found.MTU != d.recorded.MTU && d.recorded.MTU != 0 && (d.fd < 0 || found.MTU != tapMTU):
			s.report.Differ(report.Devices, d.recorded.Name, "its MTU is %d, not %d", found.MTU, d.recorded.MTU)
		default:
			s.report.Restore(report.Devices, 1)
		}
		d.link = links[i]
	}
}

// readAddresses counts the recorded addresses that the devices have.
func (s *space) readAddresses(names map[int]string) {
	list, err := s.handle.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		s.report.Remark("the addresses can't be read back: %v", err)
		return
	}
	found := map[string]int{}
	for _, a := range list {
		found[fmt.Sprint(names[a.LinkIndex], " ", addrOf(a.IP))]++
	}
	for _, d := range s.devices {
		for _, assigned := range d.recorded.Assigned {
			if key := fmt.Sprint(d.recorded.Name, " ", assigned.Network.Addr()); found[key] > 0 {
				found[key]--
				s.report.Restore(report.Addresses, 1)
			}
		}
	}
}

// readRoutes compares the routes of all tables.
func (s *space) readRoutes(names map[int]string) {
	found := map[string]int{}
	there := map[string]bool{} // prefixes in tables
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := s.handle.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			s.report.Remark("the routes can't be read back: %v", err)
			return
		}
		for _, r := range list {
			r.Family = family
			var to netip.Prefix
			found[s.foundRoute(r, names, &to)]++
			there[fmt.Sprint(to, " ", r.Table)] = true
		}
	}
	for _, r := range s.toRestore() {
		want := s.wantedRoute(r)
		table, _ := s.tableNumber(r.Table)
		switch {
		case found[want] > 0:
			found[want]--
			s.report.Restore(report.Routes, 1)
		case there[fmt.Sprint(r.To, " ", table)] && !s.isNamed(report.Routes, routeText(r)):
			s.report.Differ(report.Routes, routeText(r), "the kernel has another route to it")
		case !s.isNamed(report.Routes, routeText(r)):
			s.report.Reject(report.Routes, routeText(r), "it is not in the kernel")
		}
	}
}

// isNamed reports whether an entry was named before.
func (s *space) isNamed(part report.Part, text string) bool {
	return slices.ContainsFunc(s.report.Named, func(n report.NamedEntry) bool { return n.Part == part && n.Text == text })
}

// readNeighbours counts the recorded neighbours that the kernel has.
func (s *space) readNeighbours(names map[int]string) {
	found := map[string]bool{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := s.handle.NeighList(0, family)
		if err != nil {
			s.report.Remark("the neighbours can't be read back: %v", err)
			return
		}
		for _, n := range list {
			found[fmt.Sprint(addrOf(n.IP), " ", names[n.LinkIndex], " ", n.HardwareAddr)] = true
		}
	}
	for _, n := range s.recorded.Neighbours {
		if found[fmt.Sprint(n.Address, " ", n.Device, " ", n.MAC)] && n.State != "NOARP" {
			s.report.Restore(report.Neighbours, 1)
		}
	}
}
