package sets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/test/oracle/sets/devices"
)

// kernel are the cables of a set on the kernel's datapath. The taps of edges and the
// nodes' own interfaces are in the network namespace of their node; devices of other
// namespaces are watched there, and the wires between nodes at the fabric's end.
type kernel struct {
	ports   []Port
	devices map[string]*devices.Device // by label
}

func newKernel(w *wire) (*kernel, error) {
	k := &kernel{ports: w.ports, devices: map[string]*devices.Device{}}
	for _, p := range w.ports {
		d, err := w.device(p)
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.devices[p.Label] = d
	}
	return k, nil
}

func (w *wire) device(p Port) (*devices.Device, error) {
	switch {
	case p.Role == roleEdge:
		return devices.Tap(network(p.Node), p.Name)
	case p.own():
		return devices.Socket(network(p.Node), p.Name)
	case p.Role != roleNamespace:
		return devices.Socket(network(fabric), p.Node+"-"+p.Name)
	case p.Namespace == ownNamespace:
		return devices.Watch(network(p.Node), p.Name)
	}
	keeper, err := os.ReadFile(filepath.Join(w.home(p.Node), "namespaces", p.Namespace, "relay.pid"))
	if err != nil {
		return nil, err
	}
	return devices.Watch(filepath.Join("/proc", strings.TrimSpace(string(keeper)), "ns/net"), p.Name)
}

// network returns the path of a node's network namespace.
func network(node string) string { return filepath.Join("/run/netns", node) }

// own reports whether the port is the node's own interface, and not one to a cable.
func (p Port) own() bool { return p.Number == "LOCAL" }

func (k *kernel) put(_ context.Context, p Port, frame []byte) error {
	return k.devices[p.Label].Send(frame)
}

func (k *kernel) take() ([]caught, error) {
	var list []caught
	for _, p := range k.ports {
		frames, err := k.devices[p.Label].Receive()
		if err != nil {
			return list, err
		}
		if p.own() && p.Role == roleUnderlay {
			continue // tunnels that arrive; the cable had them before
		}
		for _, frame := range frames {
			list = append(list, caught{p, frame.Bytes, p.leaves(frame)})
		}
	}
	return list, nil
}

// leaves reports whether a frame leaves the namespace of a port. A port that joins Open vSwitch and the node's own
// namespace is a device of both, and receives what leaves that.
func (p Port) leaves(frame devices.Frame) bool {
	return p.Role == roleNamespace && frame.Sent != (p.Namespace == ownNamespace)
}

func (k *kernel) close() error {
	var err error
	for _, d := range k.devices {
		err = errors.Join(err, d.Close())
	}
	return err
}
