package follow

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// output sends the frame to a datapath port, which is a number.
func (s *step) output(ctx context.Context, name string, f *frame) error {
	port, ok := s.host.Datapath(name)
	if f.pushed != nil {
		return s.underlay(ctx, port, f)
	}
	switch {
	case !ok:
		s.undetermined(fmt.Sprintf("the datapath port %q is no port of a bridge", name), *f)
		return nil
	case !port.IsTunnel():
		return s.leave(ctx, port, *f)
	case f.tunnel == nil:
		s.undetermined(fmt.Sprintf("the packet leaves by the tunnels of port %q, and no action sets the tunnel", name), *f)
		return nil
	}
	tunnel := *f.tunnel
	tunnel.Type = port.Type
	if !s.fitsUnderlay(&tunnel, *f) {
		return nil
	}
	return s.tunnel(ctx, tunnel, *f)
}

// underlay sends the encapsulated packet out of a port. A bridge of the underlay may flood
// it: the peer receives it once.
func (s *step) underlay(ctx context.Context, port *host.Port, f *frame) error {
	if f.sent {
		return nil
	}
	f.sent = true
	tunnel := f.pushed.Tunnel
	if why := s.foreignSource(*f.pushed); why != "" {
		s.undetermined(why, *f)
		return nil
	}
	bytes := f.encapsulated(f.pushed.Header - ethernetHeader)
	if !s.fits(bytes, port, usualMTU, Branch{Why: "encapsulated, ", Tunnel: &tunnel}, *f) {
		return nil
	}
	return s.tunnel(ctx, tunnel, *f)
}

// foreignSource returns why a replica encapsulates a packet with another source address than
// its node did, "" if it does not. A source that a flow or the tunnel's own option sets is that
// of the node.
func (s *step) foreignSource(pushed odp.PushTunnel) string {
	source, ok := s.host.SourceTo(pushed.Tunnel.Dst)
	if port, found := s.host.Datapath(pushed.Port); found && port.Options["local_ip"] != "" {
		var err error
		source, err = netip.ParseAddr(port.Options["local_ip"])
		ok = err == nil
	}
	setsSource := func(line string) bool {
		return slices.Contains([]string{"tun_src", "tun_ipv4_src", "tun_ipv6_src"}, setField(line))
	}
	isSetting := func(stage pass.Stage) bool { return slices.ContainsFunc(stage.Lines, setsSource) }
	if !ok || source == pushed.Tunnel.Src || slices.ContainsFunc(s.hop.Pass.Stages, isSetting) {
		return ""
	}
	return fmt.Sprintf("the replica sends the tunnel's packets to %v from %v, and the node sent them from %v (ovs/route/show)", pushed.Tunnel.Dst, pushed.Tunnel.Src, source)
}

// nativeFailures returns why a replica builds no header for a packet that its flows send into
// a tunnel: it lacks what the kernel, or the neighbours, of the node told the live switch.
func nativeFailures(p *pass.Pass) []string {
	var all []string
	for _, stage := range p.Stages {
		for _, line := range stage.Lines {
			why := strings.TrimLeft(line, "->! ")
			switch {
			case why == "native tunnel routing failed":
				why = "the replica has no route for the tunnel, or not the source address that a flow or local_ip sets (" + why + ")"
			case strings.HasPrefix(why, "neighbor cache miss for "), why == "tunnel output device lacks Ethernet address":
				why = "the replica can't address the tunnel's next hop: " + why
			default:
				continue
			}
			if !slices.Contains(all, why) {
				all = append(all, why)
			}
		}
	}
	return all
}

// leave sends the frame out of a port that is not a tunnel's.
func (s *step) leave(ctx context.Context, port *host.Port, f frame) error {
	if !s.fits(f.payload(), port, alwaysFits, Branch{}, f) {
		return nil
	}
	b := Branch{Kind: Delivered, Port: port, Networks: s.host.NetworksOf(port), Flooded: s.hop.Pass.Floods()}
	b.Why = fmt.Sprintf("it leaves by port %s of %s", port.Name, port.Bridge)
	s.add(b, f)
	for _, peer := range s.tracer.hosts {
		if peer == s.host {
			continue
		}
		if err := s.arrive(ctx, peer, b, f); err != nil {
			return err
		}
	}
	return nil
}

// arrive continues on another node of the same physical network.
func (s *step) arrive(ctx context.Context, peer *host.Host, out Branch, f frame) error {
	var done []string // bridges of the peer
	for _, network := range out.Networks {
		for _, uplink := range peer.Uplinks(network) {
			if slices.Contains(done, uplink.Bridge) {
				continue // another member of a bond
			}
			done = append(done, uplink.Bridge)
			b := Branch{Kind: Networked, Port: out.Port, Networks: []string{network}, Why: fmt.Sprintf("network %s leads to %s of %s", network, uplink.Bridge, peer.Name)}
			arrived := frame{subject: f.elsewhere(), size: f.size, firstSize: f.firstSize, unsure: f.unsure}
			err := s.goOn(ctx, b, f, func(at count) (*Hop, *State, error) {
				return s.enter(ctx, peer, uplink, flow.Packet{}, arrived, s.state, at)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere returns the subject as another node receives it.
func (f frame) elsewhere() conntrack.Subject {
	subject := f.subject
	subject.Refragment()
	subject.Packet, subject.Meta = f.packet(), conntrack.Meta{}
	return subject
}

// tunnel continues at the other end of a tunnel.
func (s *step) tunnel(ctx context.Context, t odp.Tunnel, f frame) error {
	t.Src = s.sourceOf(&t)
	chassis := s.chassis(t.Dst)
	peer := s.peer(t.Dst, chassis)
	if peer == nil {
		b := Branch{Kind: Remote, Tunnel: &t, Why: fmt.Sprintf("the node with the tunnel address %v was not captured", t.Dst)}
		if len(chassis) > 0 {
			b.Why = fmt.Sprintf("node %s, with the tunnel address %v, was not captured", chassis[0].Hostname, t.Dst)
		}
		s.add(b, f)
		return nil
	}
	port, ok := peer.TunnelFrom(t.Type, t.Dst, t.Src)
	if !ok {
		s.add(Branch{Kind: Dropped, Tunnel: &t, Why: fmt.Sprintf("node %s has no %s tunnel from %v", peer.Name, t.Type, t.Src)}, f)
		return nil
	}
	entry, err := entryOf(peer, port, t)
	if err != nil {
		s.undetermined(err.Error(), f)
		return nil
	}
	b := Branch{Kind: Tunneled, Tunnel: &t, Why: fmt.Sprintf("%s tunnel from %v to %v", t.Type, t.Src, t.Dst)}
	arrived := frame{subject: f.elsewhere(), size: f.size, firstSize: f.firstSize, unsure: f.unsure}
	return s.goOn(ctx, b, f, func(at count) (*Hop, *State, error) {
		return s.enter(ctx, peer, port, entry, arrived, s.state, at)
	})
}

// sourceOf returns the sender's address of a tunnel.
func (s *step) sourceOf(t *odp.Tunnel) netip.Addr {
	if t.Src.IsValid() {
		return t.Src
	}
	own, _ := s.host.TunnelTo(t.Type, t.Dst)
	return own
}

// peer returns the node with a tunnel address, nil for none. A node of another deployment
// may have the same address: chassis are those that have it in the sender's databases.
func (s *step) peer(a netip.Addr, chassis []Chassis) *host.Host {
	for _, h := range s.tracer.hosts {
		named := func(c Chassis) bool { return c.Name == h.Chassis }
		if h.HasEncap(a) && (len(chassis) == 0 || h.Chassis == "" || slices.ContainsFunc(chassis, named)) {
			return h
		}
	}
	return nil
}

// chassis returns the chassis that have a tunnel address in the databases of the node.
func (s *step) chassis(a netip.Addr) []Chassis {
	if s.tracer.options.Chassis == nil {
		return nil
	}
	return s.tracer.options.Chassis(s.host.Name, a)
}

// entryOf returns the metadata of a packet that a tunnel's port received.
func entryOf(h *host.Host, port *host.Port, t odp.Tunnel) (flow.Packet, error) {
	var p flow.Packet
	if t.ID != "" {
		p.Set("tun_id", t.ID)
	}
	src, dst := "tun_src", "tun_dst"
	if t.Dst.Is6() {
		src, dst = "tun_ipv6_src", "tun_ipv6_dst"
	}
	if t.Src.IsValid() {
		p.Set(src, t.Src.String())
	}
	p.Set(dst, t.Dst.String())
	if t.TTL != "" {
		p.Set("tun_ttl", t.TTL)
	}
	for _, o := range t.Options {
		field, ok := h.OptionField(port.Bridge, o)
		if !ok {
			return p, fmt.Errorf("bridge %s of node %s maps the Geneve option of class %s and type %s to no field", port.Bridge, h.Name, o.Class, o.Type)
		}
		p.Set(field, o.Value)
	}
	return p, nil
}
