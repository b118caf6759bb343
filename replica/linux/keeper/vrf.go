//go:build linux

package keeper

import (
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// vrfPriority is that of the rule by which the kernel asks the tables of VRFs.
const vrfPriority = 1000

// isVRF reports whether a device was a VRF, and isRealVRF whether it is one here.
func (d *device) isVRF() bool     { return d.recorded.Kind == "vrf" }
func (d *device) isRealVRF() bool { return d.isVRF() && d.fd < 0 }

// standIn is a VRF for which a tap stands, because the kernel has no VRFs.
type standIn struct {
	name    string
	table   int
	devices []*device // the VRF itself, and its ports
}

// standIns returns the VRFs for which taps stand.
func (s *space) standIns() (list []standIn) {
	for _, vrf := range s.devices {
		table := number(vrf.recorded.Table)
		if !vrf.isVRF() || vrf.isRealVRF() || table == 0 {
			continue
		}
		isOf := func(d *device) bool { return d == vrf || d.recorded.Master == vrf.recorded.Name }
		list = append(list, standIn{vrf.recorded.Name, table, slices.DeleteFunc(slices.Clone(s.devices), func(d *device) bool { return !isOf(d) })})
	}
	return list
}

// addVRFRules restores the rule by which the kernel asks the tables of VRFs. A kernel that has VRFs adds it with
// the first of them; without, rules for the devices of each VRF and for their addresses take its place: what the node
// itself answers has an address of the VRF.
func (s *space) addVRFRules(rule iproute.Rule) {
	if slices.ContainsFunc(s.devices, (*device).isRealVRF) {
		s.report.Restore(report.PolicyRules, 1)
		return
	}
	for _, vrf := range s.standIns() {
		for _, r := range vrf.rules(rule) {
			if err := s.handle.RuleAdd(r); err != nil {
				s.report.Remark("no rule of %s%s%s leads to table %d of its VRF: %v", r.IifName, r.OifName, r.Src, r.Table, err)
			}
		}
	}
	s.report.Differ(report.PolicyRules, ruleText(rule), "the kernel of this machine has no VRFs: rules for the devices of each and for their addresses lead to its table")
}

// rules returns the rules that take the place of the kernel's rule for one VRF.
func (v standIn) rules(of iproute.Rule) (list []*netlink.Rule) {
	family, bits := unix.AF_INET, 32
	if of.IPv6 {
		family, bits = unix.AF_INET6, 128
	}
	add := func(fill func(r *netlink.Rule)) {
		r := netlink.NewRule()
		r.Priority, r.Family, r.Table = of.Priority, family, v.table
		fill(r)
		list = append(list, r)
	}
	for _, d := range v.devices {
		add(func(r *netlink.Rule) { r.IifName = d.recorded.Name })
		add(func(r *netlink.Rule) { r.OifName = d.recorded.Name })
		for _, assigned := range d.recorded.Assigned {
			if addr := assigned.Network.Addr(); addr.BitLen() == bits && !addr.IsLinkLocalUnicast() {
				add(func(r *netlink.Rule) { r.Src = &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, bits)} })
			}
		}
	}
	return list
}

// moveToVRFs moves the routes that the kernel made for the addresses of devices into the table of their VRF, where a
// kernel that has VRFs makes them.
func (s *space) moveToVRFs() {
	for _, vrf := range s.standIns() {
		for _, d := range vrf.devices {
			for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
				s.moveRoutes(d, family, vrf.table)
			}
		}
	}
}

func (s *space) moveRoutes(d *device, family, table int) {
	list, err := s.handle.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC, LinkIndex: d.link.Attrs().Index}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
	if err != nil {
		s.report.Remark("the routes of %s stay where the kernel made them, and not in table %d of its VRF: %v", d.recorded.Name, table, err)
		return
	}
	for _, route := range list {
		moved := route
		moved.Table = table
		err := s.handle.RouteReplace(&moved)
		if err == nil {
			err = s.handle.RouteDel(&route)
		}
		if err != nil {
			s.report.Remark("the route %s stays in table %d, and not in table %d of its VRF: %v", route.Dst, route.Table, table, err)
		}
	}
}

// remarkRulesOfVRFs says which VRFs rules of netfilter name, for which taps stand: a packet has the name of its VRF when
// it meets them, after the name of the port, and here only that of the port.
func (s *space) remarkRulesOfVRFs() {
	for _, vrf := range s.standIns() {
		names := func(path string) bool {
			text, _, err := workdir.CollectedText(path)
			return err == nil && strings.Contains(text, vrf.name)
		}
		if slices.ContainsFunc([]string{s.recorded.Filters, s.recorded.Filters6, s.recorded.Nftables}, names) {
			s.report.Remark("rules of netfilter name %s, a VRF for which a tap stands: packets of its ports do not meet them", vrf.name)
		}
	}
}
