package host

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"ovs-offline/internal/netns"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/linux"
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

	mu     sync.Mutex
	kernel *linux.Client // nil before the first frame, and after an error
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
	if n.kernel == nil {
		if n.kernel, err = linux.Dial(n.dir); err != nil {
			return passage, err
		}
	}
	passage, err = n.kernel.Pass(ctx, question)
	if err != nil {
		n.close()
	}
	return passage, err
}

// close ends the connection, if there is one. The caller holds the lock.
func (n *namespaces) close() {
	if n.kernel != nil {
		_ = n.kernel.Close()
		n.kernel = nil
	}
}

// DeviceOf returns the device through which a port of a bridge leads to the kernel; ok is false for a port
// that leads elsewhere, and for a device of which no namespace was recorded. Of several namespaces with a
// device of that name, a named one comes before the node's own.
func (h *Host) DeviceOf(port *Port) (device Device, ok bool) {
	if port.Type != "internal" && port.Name != port.Bridge {
		return Device{}, false
	}
	for _, namespace := range h.namespaces.recorded {
		if _, has := namespace.Link(port.Name); has && (!ok || device.Namespace == netns.Own) {
			device, ok = Device{namespace.Name, port.Name}, true
		}
	}
	return device, ok
}

// PortOf returns the port of a bridge whose device a device is.
func (h *Host) PortOf(device Device) (port *Port, ok bool) {
	port, ok = h.ports[device.Name]
	if !ok {
		return nil, false
	}
	own, ok := h.DeviceOf(port)
	return port, ok && own == device
}

// PeerOf returns the other end of a pair of virtual devices (veth), in another namespace or the same one.
func (h *Host) PeerOf(device Device) (peer Device, ok bool) {
	namespace, name, ok := netns.Peer(h.namespaces.recorded, device.Namespace, device.Name)
	return Device{namespace, name}, ok
}

// MayTake reports whether a device takes frames for a MAC address: its own, or that of a group.
func (h *Host) MayTake(device Device, mac string) bool {
	address, err := net.ParseMAC(mac)
	if err != nil || address[0]&1 != 0 {
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
