//go:build linux

package keeper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/iproute"
	"ovs-offline/replica/report"
)

// device is a restored network device.
type device struct {
	recorded iproute.Link
	link     netlink.Link
	fd       int // of a tap, -1 for other devices
}

const (
	loopback = "lo"
	// maxDevices bounds the devices of one namespace.
	maxDevices = 4096
	// tapMTU is the highest MTU of a tap.
	tapMTU = 65521
)

// makeDevices makes the devices: lo is there already, masters are made as they were where the kernel has them,
// and a tap stands for every other one.
func (s *space) makeDevices() {
	s.report.Record(report.Devices, len(s.recorded.Links))
	links := s.recorded.Links
	if len(links) > maxDevices {
		s.report.RejectUnnamed(report.Devices, len(links)-maxDevices, "only the first %d devices are restored", maxDevices)
		links = links[:maxDevices]
	}
	for _, link := range links {
		d := &device{recorded: link, fd: -1}
		if err := s.makeDevice(d); err != nil {
			s.report.Reject(report.Devices, link.Name, "%s", err)
			continue
		}
		s.devices = append(s.devices, d)
		s.byName[link.Name] = d
	}
}

// makeDevice makes one device.
func (s *space) makeDevice(d *device) (err error) {
	name := d.recorded.Name
	if reason := badName(name); reason != "" {
		return errors.New(reason)
	}
	if s.device(name) != nil {
		return errors.New("there is another device of this name")
	}
	if d.recorded.Kind == "" && s.isMaster(name) {
		d.recorded.Kind = s.guessMaster(name)
	}
	attributes := netlink.LinkAttrs{Name: name, TxQLen: -1, MTU: d.recorded.MTU}
	switch {
	case name == loopback:
	case d.recorded.Kind == "bridge" && s.kernel.has("bridge"):
		off := false
		err = s.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attributes, MulticastSnooping: &off})
	case d.recorded.Kind == "vrf" && s.kernel.has("vrf") && number(d.recorded.Table) > 0:
		err = s.handle.LinkAdd(&netlink.Vrf{LinkAttrs: attributes, Table: uint32(number(d.recorded.Table))})
	default:
		return s.makeTap(d)
	}
	if err != nil && name != loopback {
		return s.makeTap(d)
	}
	d.link, err = s.handle.LinkByName(name)
	return err
}

// makeTap makes a tap. Its descriptor is the only other end of the device: what the kernel sends there is read
// from it, and leads nowhere else.
func (s *space) makeTap(d *device) error {
	if !s.kernel.has("tun") {
		return errors.New("the kernel of this machine has not loaded its module tun: sudo modprobe tun")
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("/dev/net/tun: %w: a device of the namespace needs it: sudo chmod 0666 /dev/net/tun, as it usually is", err)
	}
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(d.recorded.Name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		// The device ends with the namespace, together with all others, and not with its descriptor: to end devices
		// one by one takes the kernel 20 ms each.
		err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
	}
	if err == nil {
		d.link, err = s.handle.LinkByName(d.recorded.Name)
	}
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	d.fd = fd
	switch d.recorded.Kind {
	case "bridge", "vrf", "bond":
		s.report.Remark("a tap stands for %s %s: frames go in and out at its own end, not at its ports", d.recorded.Kind, d.recorded.Name)
	}
	return nil
}

// badName returns why the kernel would not take the name of a device as it is, "" if it would.
func badName(name string) string {
	switch {
	case name == "" || len(name) >= unix.IFNAMSIZ || name == "." || name == "..":
		return "a device can't have this name"
	case strings.ContainsAny(name, "/:% \t\n\x00"):
		return "the name of the device has a character that the kernel does not take"
	}
	return ""
}

// isMaster reports whether others are ports of a device.
func (s *space) isMaster(name string) bool {
	return slices.ContainsFunc(s.recorded.Links, func(l iproute.Link) bool { return l.Master == name })
}

// guessMaster returns what a device with ports is that was recorded without -d.
func (s *space) guessMaster(name string) string {
	switch {
	case name == "ovs-system":
		return "openvswitch"
	case strings.HasPrefix(name, "bond"):
		return "bond"
	case slices.ContainsFunc(s.recorded.Routes, func(r iproute.Route) bool {
		return r.Type == "local" && r.Table != iproute.Local && r.Table != iproute.Main
	}) &&
		slices.ContainsFunc(s.recorded.Rules, func(r iproute.Rule) bool { return strings.Contains(r.Text, "l3mdev") }):
		return "vrf"
	}
	return "bridge"
}

// device returns a restored device, nil if there is none of the name.
func (s *space) device(name string) *device { return s.byName[name] }

// configureDevices gives the devices their MAC, MTU, master, state and addresses.
func (s *space) configureDevices() {
	for _, d := range s.devices {
		s.configure(d)
	}
	for _, d := range s.devices { // an answer of proxy ARP, or of proxy ND, comes at once
		for _, family := range []string{"ipv4", "ipv6"} {
			_ = writeSetting("net."+family+".neigh."+strings.ReplaceAll(d.recorded.Name, ".", "/")+".proxy_delay", "0")
		}
	}
	for _, d := range s.devices { // once all are up: a bridge waits for its ports
		s.enslave(d)
	}
	for _, link := range s.recorded.Links {
		s.report.Record(report.Addresses, len(link.Assigned))
		if d := s.device(link.Name); d != nil {
			s.addAddresses(d)
			continue
		}
		for _, assigned := range link.Assigned {
			s.report.Reject(report.Addresses, assigned.Network.String()+" dev "+link.Name, "there is no such device")
		}
	}
	s.moveToVRFs()
	for _, d := range s.devices {
		if d.fd >= 0 && d.recorded.Up && !d.recorded.Carrier {
			_ = unix.IoctlSetPointerInt(d.fd, unix.TUNSETCARRIER, 0)
		}
	}
}

// configure sets the MAC, the MTU and the state of a device.
func (s *space) configure(d *device) {
	failed := func(what string, err error) {
		if err != nil {
			s.report.Differ(report.Devices, d.recorded.Name, "%s: %v", what, err)
			d.recorded.Kind = "different"
		}
	}
	if mac, err := net.ParseMAC(d.recorded.MAC); err == nil && d.recorded.Name != loopback && len(mac) == 6 {
		if err := s.handle.LinkSetHardwareAddr(d.link, mac); err != nil {
			failed("its MAC "+d.recorded.MAC, err)
		}
	}
	mtu := d.recorded.MTU
	if d.fd >= 0 {
		mtu = min(mtu, tapMTU)
	}
	if mtu > 0 && d.recorded.Name != loopback && d.link.Attrs().MTU != mtu {
		failed("its MTU "+strconv.Itoa(mtu), s.handle.LinkSetMTU(d.link, mtu))
	}
	if d.recorded.Up {
		failed("setting it up", s.handle.LinkSetUp(d.link))
	}
}

// enslave makes a device the port of its master, if that was restored as one.
func (s *space) enslave(d *device) {
	if d.recorded.Master == "" {
		return
	}
	master := s.device(d.recorded.Master)
	if master == nil || master.fd >= 0 {
		return // a tap stands for the master: it was said there
	}
	if err := s.handle.LinkSetMaster(d.link, master.link); err != nil {
		s.report.Differ(report.Devices, d.recorded.Name, "as a port of %s: %v", d.recorded.Master, err)
	}
}

// addAddresses adds the addresses of a device.
func (s *space) addAddresses(d *device) {
	for _, assigned := range d.recorded.Assigned {
		addr := &netlink.Addr{IPNet: ipNet(assigned.Network), Scope: scopeNumber(assigned.Scope)}
		if assigned.Peer.IsValid() {
			addr.Peer = &net.IPNet{IP: assigned.Peer.AsSlice(), Mask: addr.Mask}
			addr.IPNet = &net.IPNet{IP: addr.IP, Mask: net.CIDRMask(len(addr.Mask)*8, len(addr.Mask)*8)}
		}
		if assigned.Network.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		} else if ones, bits := addr.Mask.Size(); !assigned.Peer.IsValid() && ones < bits-1 {
			addr.Broadcast = broadcast(addr.IPNet)
		}
		err := s.handle.AddrAdd(d.link, addr)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			s.report.Reject(report.Addresses, assigned.Network.String()+" dev "+d.recorded.Name, "%v", err)
		}
	}
}
