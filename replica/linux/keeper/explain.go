//go:build linux

package keeper

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
	"ovs-offline/workdir/netns"
)

// explain adds why a frame is gone that neither came out nor was taken by a rule or the node: no step says so.
func (s *space) explain(p *linux.Passage, d *device, frame []byte) {
	if len(p.Out) > 0 || p.Local || isDropped(p) {
		return
	}
	if mac := net.HardwareAddr(frame[:6]); len(p.Steps)+len(p.Reached) == 0 && mac[0]&1 == 0 && !s.isBridged(d) && mac.String() != d.recorded.MAC {
		p.Remarks = append(p.Remarks, fmt.Sprintf("the frame is for %s, and %s is %s: the kernel takes no notice of it", mac, d.recorded.Name, d.recorded.MAC))
		return
	}
	source, destination, ok := addresses(frame)
	if !ok || slices.Contains(p.Reached, "forward") {
		return
	}
	_, err := s.handle.RouteGetWithOptions(destination.AsSlice(), &netlink.RouteGetOptions{Iif: d.recorded.Name, SrcAddr: source.AsSlice(), Mark: s.mark})
	what := fmt.Sprintf("of %s to %s, which came in by %s", source, destination, d.recorded.Name)
	switch {
	case err == nil:
	case errors.Is(err, unix.EXDEV):
		p.Remarks = append(p.Remarks, fmt.Sprintf("rp_filter drops the packet %s: the way to its source is another", what))
	case errors.Is(err, unix.EINVAL):
		p.Remarks = append(p.Remarks, fmt.Sprintf("the kernel's routing refuses the packet %s: one of the addresses can't be", what))
	case !s.forwards(destination) && !s.recorded.KnowsForwarding(familyOf(destination)):
		p.Unknown = fmt.Sprintf("the packet %s is to be forwarded, and whether %s forwards was not recorded: sysctl -a has it", what, netns.Title(s.recorded.Name))
	case !s.forwards(destination):
		p.Remarks = append(p.Remarks, fmt.Sprintf("the namespace does not forward: the packet %s ends", what))
	default:
		p.Unreachable = unreachable(err, destination)
		p.Remarks = append(p.Remarks, fmt.Sprintf("there is no route for the packet %s: %v", what, err))
	}
}

// isBridged reports whether a device takes frames for any MAC address, as the port of a bridge. A port of a VRF does
// not.
func (s *space) isBridged(d *device) bool {
	master := s.device(d.recorded.Master)
	return d.recorded.Master != "" && (master == nil || !master.isVRF())
}

// unreachable names what an ICMP error of the kernel calls unreachable after an error of its routing; "" for errors
// about which it sends none, and for IPv6, of which it sends any number.
func unreachable(err error, destination netip.Addr) string {
	switch {
	case destination.Is6():
		return ""
	case errors.Is(err, unix.ENETUNREACH):
		return "network"
	case errors.Is(err, unix.EHOSTUNREACH):
		return "host"
	}
	return ""
}

// familyOf returns 4 or 6.
func familyOf(addr netip.Addr) int {
	if addr.Is4() {
		return 4
	}
	return 6
}

// forwards reports whether the namespace forwards packets of the family of an address.
func (s *space) forwards(addr netip.Addr) bool {
	name := "net.ipv4.ip_forward"
	if addr.Is6() {
		name = "net.ipv6.conf.all.forwarding"
	}
	value, err := readSetting(name)
	return err != nil || value != "0"
}

// addresses returns the addresses of the IP packet in a frame.
func addresses(frame []byte) (source, destination netip.Addr, ok bool) {
	payload := frame[14:]
	switch uint16(frame[12])<<8 | uint16(frame[13]) {
	case unix.ETH_P_IP:
		if len(payload) >= 20 {
			return netip.AddrFrom4([4]byte(payload[12:16])), netip.AddrFrom4([4]byte(payload[16:20])), true
		}
	case unix.ETH_P_IPV6:
		if len(payload) >= 40 {
			return netip.AddrFrom16([16]byte(payload[8:24])), netip.AddrFrom16([16]byte(payload[24:40])), true
		}
	}
	return source, destination, false
}
