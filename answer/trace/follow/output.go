package follow

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir/netns"
)

// output sends the frame out of the datapath port with a number.
func (s *step) output(ctx context.Context, name string, frame *frame) error {
	port, ok := s.host.Datapath(name)
	if frame.pushed != nil {
		return s.leaveByUnderlay(ctx, port, frame)
	}
	switch {
	case !ok:
		s.addUndetermined(fmt.Sprintf("no bridge has the datapath port %q", name), *frame)
		return nil
	case port.Unknown == ovsdb.UnknownName:
		s.addUndetermined(fmt.Sprintf("the packet leaves by port %d of %s, whose name and type were not recorded: ovs-appctl dpif/show has them", port.Number, port.Bridge), *frame)
		return nil
	case port.Unknown == ovsdb.UnknownType:
		s.addUndetermined(fmt.Sprintf("the packet leaves by port %s of %s, by its name a patch port or a tunnel, whose settings were not recorded: ovs-vsctl show has them", port.Name, port.Bridge), *frame)
		return nil
	case !port.IsTunnel():
		if s.isLearnedElsewhere(port, frame.packet()) {
			return nil
		}
		return s.leave(ctx, port, *frame)
	case frame.tunnel == nil:
		s.addUndetermined(fmt.Sprintf("the packet leaves by the tunnels of port %q, and no action sets the tunnel", name), *frame)
		return nil
	}
	tunnel := *frame.tunnel
	tunnel.Type = port.Type
	if !s.fitsUnderlay(&tunnel, *frame) {
		return nil
	}
	return s.leaveByTunnel(ctx, tunnel, *frame)
}

// leaveByUnderlay sends the encapsulated packet out of a port. A bridge of the underlay may flood
// it: the peer receives it once.
func (s *step) leaveByUnderlay(ctx context.Context, port *host.Port, frame *frame) error {
	if frame.sent {
		return nil
	}
	frame.sent = true
	tunnel := frame.pushed.Tunnel
	if why := foreignSource(s.host, s.hop.Pass, *frame.pushed); why != "" {
		s.addUndetermined(why, *frame)
		return nil
	}
	bytes := frame.encapsulated(frame.pushed.Header - ethernetHeader)
	if !s.fits(bytes, port, usualMTU, Branch{Why: "encapsulated, ", Tunnel: &tunnel}, *frame) {
		return nil
	}
	return s.leaveByTunnel(ctx, tunnel, *frame)
}

// foreignSource returns why the replica of a node encapsulates a packet with another source
// address than the node did, "" if it does not. It does not where a flow of the pass or the
// tunnel's own option sets the source.
func foreignSource(node *host.Host, printed *pass.Pass, pushed odp.PushTunnel) string {
	source, ok := node.SourceTo(pushed.Tunnel.Dst)
	if port, found := node.Datapath(pushed.Port); found && port.Options["local_ip"] != "" {
		var err error
		source, err = netip.ParseAddr(port.Options["local_ip"])
		ok = err == nil
	}
	setsSource := func(line string) bool {
		return slices.Contains([]string{"tun_src", "tun_ipv6_src"}, openflow.Target(line))
	}
	isSetting := func(stage pass.Stage) bool { return slices.ContainsFunc(stage.Lines, setsSource) }
	if !ok || source == pushed.Tunnel.Src || slices.ContainsFunc(printed.Stages, isSetting) {
		return ""
	}
	return fmt.Sprintf("the replica sends the tunnel's packets to %v from %v, and the node sent them from %v (ovs/route/show)", pushed.Tunnel.Dst, pushed.Tunnel.Src, source)
}

// nativeFailures returns why a replica builds no header for a packet that its flows send into
// a tunnel: it lacks what the kernel, or the neighbours, of the node told the live switch. The
// live switch failed too with a packet whose mark no recorded route has.
func nativeFailures(node *host.Host, p *pass.Pass) []string {
	var all []string
	for _, stage := range p.Stages {
		for _, line := range stage.Lines {
			why := strings.TrimLeft(line, "->! ")
			switch {
			case why == "native tunnel routing failed" && !node.HasRouteFor(markOf(p)):
				continue
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

// markOf returns the mark (pkt_mark) of a packet at the end of a pass, "" for none.
func markOf(p *pass.Pass) string {
	final, err := flow.Parse(p.Final)
	if err != nil { // unchanged
		return ""
	}
	return final.Get("pkt_mark")
}

// leave sends the frame out of a port that is not an end of tunnels.
func (s *step) leave(ctx context.Context, port *host.Port, frame frame) error {
	if !s.fits(frame.payload(), port, alwaysFits, Branch{}, frame) {
		return nil
	}
	branch := Branch{Kind: Delivered, Port: port, Networks: s.host.NetworksOf(port), Flooded: s.hop.Pass.Floods()}
	if device, ok := s.host.DeviceOf(port); ok && !(s.asks && tellsMAC(frame.packet())) {
		if s.host.MayTake(device, frame.packet().Get("dl_dst")) {
			return s.intoKernel(ctx, device, branch, frame)
		}
		branch.Kind, branch.Loss = Dropped, NotTaken
		branch.Why = fmt.Sprintf("the device %s of %s does not take it: it is for another MAC address", device.Name, netns.Title(device.Namespace))
		s.add(branch, frame)
		return nil
	}
	branch.Why = fmt.Sprintf("it leaves by port %s of %s", port.Name, port.Bridge)
	if len(branch.Networks) > 0 && (branch.Flooded || isGroup(frame.packet().Get("dl_dst"))) {
		branch.MayReach = s.unwired()
	}
	if len(branch.MayReach) > 0 {
		branch.Why += "; whether " + phrase.FirstNames(branch.MayReach) + " is on the same wire was not recorded"
	}
	if frame.isBridged(branch.Networks) {
		branch.Why += ", to another wire than the one by which it came"
		s.add(branch, frame)
		return nil
	}
	s.add(branch, frame)
	return s.spread(ctx, branch, frame)
}

// spread continues at each other end of the physical networks to which the frame was sent.
func (s *step) spread(ctx context.Context, branch Branch, frame frame) error {
	ends := s.withDevice(s.endsOf(branch), frame.packet().Get("dl_dst"))
	if len(ends) > 1 { // they receive it before one of them answers
		for _, end := range ends {
			passes, err := s.ask(ctx, end.host, end.uplink.Bridge, entering(end.uplink, flow.Packet{}, frame.asReceived()))
			if err != nil {
				continue // arrive has the same error
			}
			s.state = s.state.learnAddresses(end.host, end.uplink, passes[0], frame.packet())
		}
	}
	for _, end := range ends {
		if err := s.arrive(ctx, end, branch, frame); err != nil {
			return err
		}
	}
	return nil
}

// end is where a physical network leads to a bridge.
type end struct {
	network string
	host    *host.Host
	uplink  *host.Port
}

// endsOf returns the ends of the physical networks that a branch leads to, without the bridge that it
// comes from. Of the members of a bond, one counts.
func (s *step) endsOf(branch Branch) (ends []end) {
	for _, peer := range s.tracer.hosts {
		var done []string // bridges of the peer
		if peer == s.host && branch.Port != nil {
			done = append(done, branch.Port.Bridge)
		}
		for _, network := range branch.Networks {
			for _, uplink := range peer.Uplinks(network) {
				if !slices.Contains(done, uplink.Bridge) {
					done = append(done, uplink.Bridge)
					ends = append(ends, end{network, peer, uplink})
				}
			}
		}
	}
	return ends
}

// withDevice returns the ends on nodes that have a device of a namespace with a MAC address, or all ends if none
// has: the switches of a physical network know by which port a router that announced itself is reached.
func (s *step) withDevice(ends []end, mac string) []end {
	var known []end
	for _, end := range ends {
		if len(end.host.WithMAC(mac)) > 0 {
			known = append(known, end)
		}
	}
	if len(known) == 0 {
		return ends
	}
	return known
}

// isGroup reports whether a MAC address is that of a group (IEEE 802).
func isGroup(mac string) bool {
	address, err := net.ParseMAC(mac)
	return err == nil && address[0]&1 != 0
}

// unwired returns the bridges of other nodes that may be on any wire.
func (s *step) unwired() (all []string) {
	for _, peer := range s.tracer.hosts {
		if peer != s.host {
			for _, bridge := range peer.Unwired() {
				all = append(all, bridge+" of "+peer.Name)
			}
		}
	}
	return all
}

// arrive continues on another node of the same physical network.
func (s *step) arrive(ctx context.Context, at end, out Branch, frame frame) error {
	branch := Branch{Kind: Networked, Port: out.Port, Networks: []string{at.network}, Why: fmt.Sprintf("network %s leads to %s of %s", at.network, at.uplink.Bridge, at.host.Name)}
	arrived := frame.asReceived()
	arrived.network, arrived.sender = at.network, arrived.subject.Packet.Get("dl_src")
	return s.proceed(ctx, branch, frame, func(passes count) (*Hop, *State, error) {
		return s.enter(ctx, at.host, at.uplink, flow.Packet{}, arrived, s.state, passes)
	})
}

// isBridged reports whether the frame came from one of these physical networks, and no router has
// changed its sender since. The bridge then sends it to another wire of the network: on the same
// wire, it would go in circles.
func (f frame) isBridged(networks []string) bool {
	return slices.Contains(networks, f.network) && f.packet().Get("dl_src") == f.sender
}

// asReceived returns the frame as another node receives it.
func (f frame) asReceived() frame {
	subject := f.subject
	subject.Refragment()
	subject.Packet, subject.Meta = f.packet(), conntrack.Meta{}
	return frame{subject: subject, size: f.size, firstSize: f.firstSize, unsure: f.unsure, mayFragment: f.mayFragment}
}

// leaveByTunnel continues at the other end of a tunnel.
func (s *step) leaveByTunnel(ctx context.Context, tunnel odp.Tunnel, frame frame) error {
	tunnel.Src = sourceOf(s.host, &tunnel)
	chassis := s.tracer.chassisWith(tunnel.Dst, s.host.Name)
	peer := s.tracer.peerWith(tunnel.Dst, chassis)
	if peer == nil {
		branch := Branch{Kind: Remote, Tunnel: &tunnel, Why: fmt.Sprintf("the node with the tunnel address %v was not captured", tunnel.Dst)}
		if len(chassis) > 0 {
			branch.Why = fmt.Sprintf("node %s, with the tunnel address %v, was not captured", chassis[0].Hostname, tunnel.Dst)
		}
		s.add(branch, frame)
		return nil
	}
	port, ok := peer.TunnelFrom(tunnel.Type, tunnel.Dst, tunnel.Src)
	if !ok {
		s.add(Branch{Kind: Dropped, Tunnel: &tunnel, Why: fmt.Sprintf("node %s has no %s tunnel from %v", peer.Name, tunnel.Type, tunnel.Src)}, frame)
		return nil
	}
	metadata, err := tunnelMetadata(peer, port, tunnel)
	if err != nil {
		s.addUndetermined(err.Error(), frame)
		return nil
	}
	branch := Branch{Kind: Tunneled, Tunnel: &tunnel, Why: fmt.Sprintf("%s tunnel from %v to %v", tunnel.Type, tunnel.Src, tunnel.Dst)}
	arrived := frame.asReceived()
	return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
		return s.enter(ctx, peer, port, metadata, arrived, s.state, at)
	})
}

// sourceOf returns the address from which a node sends the packets of a tunnel.
func sourceOf(node *host.Host, tunnel *odp.Tunnel) netip.Addr {
	if tunnel.Src.IsValid() {
		return tunnel.Src
	}
	own, _ := node.TunnelTo(tunnel.Type, tunnel.Dst)
	return own
}

// Peer returns the node at the other end of the tunnels of a node to an address, nil for none.
func (t *Tracer) Peer(node string, address netip.Addr) *host.Host {
	return t.peerWith(address, t.chassisWith(address, node))
}

// peerWith returns the node with a tunnel address, nil for none. A node of another deployment
// may have the same address: chassis lists the chassis that have it in the sender's databases.
func (t *Tracer) peerWith(address netip.Addr, chassis []Chassis) *host.Host {
	for _, node := range t.hosts {
		named := func(c Chassis) bool { return c.Name == node.Chassis }
		if node.HasEncap(address) && (len(chassis) == 0 || node.Chassis == "" || slices.ContainsFunc(chassis, named)) {
			return node
		}
	}
	return nil
}

// chassisWith returns the chassis that have a tunnel address in the databases of a node.
func (t *Tracer) chassisWith(address netip.Addr, node string) []Chassis {
	if t.options.Chassis == nil {
		return nil
	}
	return t.options.Chassis(node, address)
}

// tunnelMetadata returns the metadata of a packet that a tunnel's port received.
func tunnelMetadata(node *host.Host, port *host.Port, tunnel odp.Tunnel) (flow.Packet, error) {
	var metadata flow.Packet
	if tunnel.ID != "" {
		metadata.Set("tun_id", tunnel.ID)
	}
	src, dst := "tun_src", "tun_dst"
	if tunnel.Dst.Is6() {
		src, dst = "tun_ipv6_src", "tun_ipv6_dst"
	}
	if tunnel.Src.IsValid() {
		metadata.Set(src, tunnel.Src.String())
	}
	metadata.Set(dst, tunnel.Dst.String())
	if tunnel.TTL != "" {
		metadata.Set("tun_ttl", tunnel.TTL)
	}
	for _, option := range tunnel.Options {
		field, ok := node.OptionField(port.Bridge, option)
		if !ok {
			return metadata, fmt.Errorf("bridge %s of node %s does not map the Geneve option of class %s and type %s to a field", port.Bridge, node.Name, option.Class, option.Type)
		}
		metadata.Set(field, option.Value)
	}
	return metadata, nil
}
