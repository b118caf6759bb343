package sets

import (
	"context"
	"fmt"
	"path/filepath"
)

// Probe sends packets into a running set openstack, whose databases a test changes.
type Probe struct {
	wire  *wire
	hosts map[string]host // by label
}

// NewProbe returns a probe of the set that runs in a folder.
func NewProbe(folder string) (*Probe, error) {
	s := &Set{}
	if err := s.readPorts(filepath.Join(folder, "ports")); err != nil {
		return nil, err
	}
	p := &Probe{wire: newWire(folder, s.Ports, s.Nodes), hosts: map[string]host{}}
	_, err := p.wire.collect(context.Background(), []*step{{}}) // what the set sent before
	c := newCloud()
	for _, h := range []host{c.vm1, c.vm2, c.vm3, c.vm4, c.vm5, c.out} {
		p.hosts[h.label] = h
	}
	return p, err
}

// Resolve sends an ARP request, and waits for the answer at the same end point: bridges
// learn where the address is.
func (p *Probe) Resolve(ctx context.Context, from, address string) error {
	return p.wire.send(ctx, &step{Packet: Packet{Shows: from + " asks for " + address}, frame: p.hosts[from].arp(address), to: []string{from}})
}

// Connect sends the first packet of a TCP connection from the end point with a label, and
// returns the labels of the ports where it came out; want are those for which it waits. The
// switches have learned no MAC before.
func (p *Probe) Connect(ctx context.Context, from, to string, port uint16, want ...string) ([]string, error) {
	h, ok := p.hosts[from]
	if !ok {
		return nil, fmt.Errorf("no end point has the label %q", from)
	}
	for _, node := range p.wire.nodes {
		if _, err := p.wire.ask(ctx, node, "fdb/flush"); err != nil {
			return nil, err
		}
	}
	s := &step{Packet: Packet{Shows: from + " connects to " + to}, frame: h.tcp(to, port), to: want}
	if err := p.wire.send(ctx, s); err != nil {
		return nil, err
	}
	var labels []string
	for _, o := range s.Outputs {
		if o.Own {
			labels = append(labels, o.Label)
		}
	}
	return labels, nil
}

// Send sends a packet of a protocol (tcp, udp or icmp) from the end point with a label to an address, through the
// router unless it is on the same network, and returns whether it came out at an end point. want are
// the labels of the ports for which it waits.
func (p *Probe) Send(ctx context.Context, from, protocol, to string, port uint16, want ...string) (arrived bool, err error) {
	h, ok := p.hosts[from]
	if !ok {
		return false, fmt.Errorf("no end point has the label %q", from)
	}
	var near []string
	for _, other := range p.hosts {
		if other.gw == h.gw && (other.ip == to || other.ip6 == to) {
			near = []string{other.mac}
		}
	}
	s := &step{Packet: Packet{Shows: from + " sends " + protocol + " to " + to}, to: want}
	switch protocol {
	case "tcp":
		s.frame = h.tcp(to, port, near...)
	case "udp":
		s.frame = h.udp(to, port, near...)
	default:
		s.frame = h.ping(to, near...)
	}
	err = p.wire.send(ctx, s)
	for _, o := range s.Outputs {
		arrived = arrived || o.Own
	}
	return arrived, err
}

// Address returns the IPv4 address of the end point with a label, "" if there is none.
func (p *Probe) Address(label string) string { return p.hosts[label].ip }
