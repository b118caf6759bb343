package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/iproute"
	"ovs-offline/internal/phrase"
	"ovs-offline/replica/linux"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// Device is a device of a network namespace of the node.
type Device struct {
	Namespace string // netns.Own for the node's own
	Name      string
}

// namespaces are the network namespaces of a node, as recorded and as the replica restored them.
type namespaces struct {
	recorded []netns.Namespace
	dir      *workdir.Dir

	mu      sync.Mutex
	kernel  *linux.Client  // nil before the first frame, and after an error
	missing map[string]int // the number of points in which each namespace differs from the recorded one
}

// readNamespaces reads the recorded namespaces.
func (r *reader) readNamespaces() (err error) {
	r.namespaces.dir = r.dir
	r.namespaces.recorded, err = netns.Read(&r.dir.Data)
	return err
}

// pass puts a frame into a device. After an error, the next call connects again.
func (n *namespaces) pass(ctx context.Context, question linux.Question) (passage linux.Passage, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err = n.connect(ctx); err == nil {
		passage, err = n.kernel.Pass(ctx, question)
	}
	if err != nil {
		n.close()
	}
	return passage, err
}

// connect connects to the process that keeps the namespaces, if that is not done yet.
func (n *namespaces) connect(ctx context.Context) (err error) {
	if n.kernel != nil {
		return nil
	}
	if n.kernel, err = linux.Dial(n.dir); err != nil {
		return err
	}
	restored, err := n.kernel.Namespaces(ctx)
	n.missing = map[string]int{}
	for _, namespace := range restored {
		n.missing[namespace.Name] = len(namespace.Missing)
	}
	return err
}

// namespace returns a recorded namespace; ok is false for one that was not recorded.
func (h *Host) namespace(name string) (recorded netns.Namespace, ok bool) {
	i := slices.IndexFunc(h.namespaces.recorded, func(n netns.Namespace) bool { return n.Name == name })
	if i < 0 {
		return recorded, false
	}
	return h.namespaces.recorded[i], true
}

// Doubts returns sentences about what a namespace lacks, so that a frame may go another way in it than on the node.
func (h *Host) Doubts(namespace string) (doubts []string) {
	if recorded, ok := h.namespace(namespace); ok && !recorded.Filtered {
		doubts = append(doubts, fmt.Sprintf("no rules of netfilter were recorded of %s: nothing is filtered or translated there", netns.Title(namespace)))
	}
	if recorded, ok := h.namespace(namespace); ok && !recorded.KnowsForwarding(4) {
		what := "has the settings of a new one"
		if recorded.IsRouter() {
			what = "forwards packets, and has all other settings of a new one"
		}
		doubts = append(doubts, fmt.Sprintf("%s of %s %s: sysctl -a of it was not recorded", netns.Title(namespace), h.Name, what))
	}
	h.namespaces.mu.Lock()
	defer h.namespaces.mu.Unlock()
	if n := h.namespaces.missing[namespace]; n > 0 {
		doubts = append(doubts, fmt.Sprintf("the network namespace %s of %s differs from the recorded one in %s, which its report lists: none of them decides about the packet", netns.Title(namespace), h.Name, phrase.Count(n, "point")))
	}
	return doubts
}

// close ends the connection, if there is one. The caller holds the lock.
func (n *namespaces) close() {
	if n.kernel != nil {
		_ = n.kernel.Close()
		n.kernel = nil
	}
}

// DeviceOf returns the device by which a frame that leaves by a port enters the kernel; ok is false for a port
// that leads elsewhere, and for a device of which no namespace was recorded. It is the device of an internal port, or
// the other end of a veth that a bridge of Linux has, as qvb of neutron's iptables_hybrid firewall.
func (h *Host) DeviceOf(port *Port) (device Device, ok bool) {
	if port.Type != "internal" && port.Name != port.Bridge {
		peer, ok := h.PeerOf(Device{netns.Own, port.Name})
		return peer, ok && h.master(peer) != ""
	}
	return h.internalDevice(port)
}

// internalDevice returns the device of an internal port. Of several namespaces with a device of that name, a named
// one comes before the node's own.
func (h *Host) internalDevice(port *Port) (device Device, ok bool) {
	for _, namespace := range h.namespaces.recorded {
		if _, has := namespace.Link(port.Name); has && (!ok || device.Namespace == netns.Own) {
			device, ok = Device{namespace.Name, port.Name}, true
		}
	}
	return device, ok
}

// vrf is the kind of a VRF, whose ports take frames as other devices do.
const vrf = "vrf"

// master returns the bridge of Linux that a device is a port of, "" for none.
func (h *Host) master(device Device) string {
	if master, kind := h.masterOf(device); kind != vrf {
		return master
	}
	return ""
}

// masterOf returns the device that a device is a port of, "" for none, and its kind.
func (h *Host) masterOf(device Device) (name, kind string) {
	namespace, _ := h.namespace(device.Namespace)
	link, _ := namespace.Link(device.Name)
	master, _ := namespace.Link(link.Master)
	return link.Master, master.Kind
}

// VRFOf returns the VRF that a device is a port of, "" for none.
func (h *Host) VRFOf(device Device) string {
	if master, kind := h.masterOf(device); kind == vrf {
		return master
	}
	return ""
}

// ListenersFor returns a sentence about the processes that get a packet of a protocol, "tcp" or "udp", which came in by
// a device for the namespace itself; "" if all can that listen.
func (h *Host) ListenersFor(device Device, protocol string) string {
	name := h.VRFOf(device)
	setting := "net.ipv4." + protocol + "_l3mdev_accept" // of IPv6, too
	namespace, _ := h.namespace(device.Namespace)
	if name == "" || namespace.Sysctls[setting] == "1" {
		return ""
	}
	return fmt.Sprintf("a process gets the packet that listens in the VRF %s, and no other (%s is not 1)", name, setting)
}

// AsksForMarks reports whether rules of the routing policy or of netfilter of a namespace may ask for the mark of a packet.
func (h *Host) AsksForMarks(namespace string) bool {
	recorded, ok := h.namespace(namespace)
	if !ok {
		return false
	}
	for _, path := range []string{recorded.Filters, recorded.Filters6, recorded.Nftables} {
		if text, _, err := workdir.CollectedText(path); err != nil || strings.Contains(text, "mark") {
			return true
		}
	}
	return slices.ContainsFunc(recorded.Rules, func(r iproute.Rule) bool { return strings.Contains(r.Text, "fwmark") })
}

// GuestOf returns the device of a VM behind a port of a bridge of Open vSwitch: where a bridge of Linux is between
// them, it is that one's other port.
func (h *Host) GuestOf(port *Port) (guest Device, ok bool) {
	device, ok := h.DeviceOf(port)
	if !ok || h.master(device) == "" {
		return Device{}, false
	}
	others := h.siblings(device)
	if len(others) != 1 {
		return Device{}, false
	}
	return others[0], true
}

// IfaceIDOf returns the iface-id of the port of Open vSwitch that leads to the bridge of Linux of a device, "" for
// none.
func (h *Host) IfaceIDOf(device Device) string {
	for _, other := range h.siblings(device) {
		if peer, ok := h.PeerOf(other); ok && peer.Namespace == netns.Own && h.ports[peer.Name] != nil {
			return h.ports[peer.Name].IfaceID
		}
	}
	return ""
}

// siblings returns the other ports of the bridge of Linux that a device is a port of.
func (h *Host) siblings(device Device) (others []Device) {
	master := h.master(device)
	namespace, _ := h.namespace(device.Namespace)
	for _, link := range namespace.Links {
		if master != "" && link.Master == master && link.Name != device.Name {
			others = append(others, Device{namespace.Name, link.Name})
		}
	}
	return others
}

// OwnDevice returns a device of the node's own namespace that is no port of Open vSwitch, by its name.
func (h *Host) OwnDevice(name string) (device Device, ok bool) {
	if own, recorded := h.namespace(netns.Own); recorded && h.ports[name] == nil {
		_, ok = own.Link(name)
	}
	return Device{netns.Own, name}, ok
}

// ProcessIn stands for a process in a namespace; ok is false if that was not recorded.
func (h *Host) ProcessIn(namespace string) (device Device, ok bool) {
	_, ok = h.namespace(namespace)
	return Device{namespace, linux.Process}, ok
}

// HasNamespaces reports whether the replica has restored network namespaces, which packets can pass.
func (h *Host) HasNamespaces(ctx context.Context) bool {
	h.namespaces.mu.Lock()
	defer h.namespaces.mu.Unlock()
	err := h.namespaces.connect(ctx)
	if err != nil {
		h.namespaces.close()
	}
	return err == nil
}

// SourceOf returns the address from which a process of the node's own namespace sends to another address, by the
// recorded routes of the tables local and main; ok is false if none leads there.
func (h *Host) SourceOf(to netip.Addr) (source netip.Addr, ok bool) {
	own, ok := h.namespace(netns.Own)
	if !ok {
		return source, false
	}
	return own.SourceOf(to)
}

// PortOf returns the port of a bridge to which a device leads: its own, or that at the other end of a veth.
func (h *Host) PortOf(device Device) (port *Port, ok bool) {
	if port, ok = h.ports[device.Name]; ok {
		own, isInternal := h.internalDevice(port)
		if isInternal && own == device && (port.Type == "internal" || port.Name == port.Bridge) {
			return port, true
		}
	}
	if peer, isVeth := h.PeerOf(device); isVeth && peer.Namespace == netns.Own {
		port, ok = h.ports[peer.Name]
		return port, ok
	}
	return nil, false
}

// PeerOf returns the other end of a pair of virtual devices (veth), in another namespace or the same one.
func (h *Host) PeerOf(device Device) (peer Device, ok bool) {
	namespace, name, ok := netns.Peer(h.namespaces.recorded, device.Namespace, device.Name)
	return Device{namespace, name}, ok
}

// MayTake reports whether a device takes frames for a MAC address: its own, that of a group, or any as the port of
// a bridge of Linux.
func (h *Host) MayTake(device Device, mac string) bool {
	address, err := net.ParseMAC(mac)
	if err != nil || address[0]&1 != 0 || h.master(device) != "" {
		return err == nil
	}
	return slices.Contains(h.WithMAC(mac), device)
}

// WithMAC returns the devices of the node with a MAC address.
func (h *Host) WithMAC(mac string) (devices []Device) {
	for _, namespace := range h.namespaces.recorded {
		for _, link := range namespace.Links {
			if link.MAC == mac {
				devices = append(devices, Device{namespace.Name, link.Name})
			}
		}
	}
	return devices
}

// Through puts a frame into a device of a restored namespace, and returns what the kernel did with it.
func (h *Host) Through(ctx context.Context, question linux.Question) (linux.Passage, error) {
	passage, err := h.namespaces.pass(ctx, question)
	if err != nil {
		err = fmt.Errorf("the network namespace %s of node %s: %w", netns.Title(question.Namespace), h.Name, err)
	}
	return passage, err
}

// Close ends the connections to the replica.
func (h *Host) Close() {
	h.namespaces.mu.Lock()
	h.namespaces.close()
	h.namespaces.mu.Unlock()
	h.asker.Close()
}
