package sets

import (
	"context"
	"errors"

	"ovs-offline/test/oracle/sets/devices"
)

// kernel are the cables of a set on the kernel's datapath. The taps of edges and the
// nodes' own interfaces are in the network namespace of their node; the wires between
// nodes are watched at the fabric's end.
type kernel struct {
	ports   []Port
	devices map[string]*devices.Device // by label
}

func newKernel(ports []Port) (*kernel, error) {
	k := &kernel{ports: ports, devices: map[string]*devices.Device{}}
	for _, p := range ports {
		d, err := device(p)
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.devices[p.Label] = d
	}
	return k, nil
}

func device(p Port) (*devices.Device, error) {
	switch {
	case p.Role == roleEdge:
		return devices.Tap(p.Node, p.Name)
	case p.own():
		return devices.Socket(p.Node, p.Name)
	}
	return devices.Socket(fabric, p.Node+"-"+p.Name)
}

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
			list = append(list, caught{p, frame, false})
		}
	}
	return list, nil
}

func (k *kernel) close() error {
	var err error
	for _, d := range k.devices {
		err = errors.Join(err, d.Close())
	}
	return err
}
