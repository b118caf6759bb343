package follow

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
)

// track executes a ct action. It returns false if the packet can't be followed further.
func (s *step) track(action odp.Track, frame *frame) bool {
	tracker := s.host.Conntrack
	options := s.tracer.options
	tracker.Assumed = s.assumed
	if options.New || options.States != nil {
		tracker.Table = nil
	}
	result, err := tracker.Execute(s.state.changedConnections(), frame.subject, action)
	if err != nil {
		s.addUndetermined(err.Error(), *frame)
		return false
	}
	frame.subject, s.state, frame.track = result.Subject, s.state.withConnections(result.Changes), &action
	if result.Subject.Fragment != "" {
		s.hop.Assumed = append(s.hop.Assumed, "all fragments of the datagram arrive, and the first one is the largest")
		frame.size = max(frame.size, frame.firstSize)
	}
	if options.States != nil && !action.Commit {
		flags := conntrack.Flags{New: true}
		if s.lookups < len(options.States) {
			flags = options.States[s.lookups]
		}
		s.lookups++
		frame.subject.Meta.Flags = flags
	}
	if result.Uncertain != "" {
		frame.unsure = append(frame.unsure[:len(frame.unsure):len(frame.unsure)], result.Uncertain)
	}
	s.hop.Assumed = append(s.hop.Assumed, result.Assumed...)
	frame.found = &Lookup{Zone: action.Zone, Owner: s.host.Zones[action.Zone], State: frame.subject.Meta.Flags.String(), OfQuestion: result.OfQuestion}
	if result.Connection != nil {
		frame.found.Text = result.Connection.String()
	}
	return true
}

// recirculate resumes the packet on the same node.
func (s *step) recirculate(ctx context.Context, id uint32, frame frame) error {
	if frame.hashed {
		return s.choose(ctx, id, frame)
	}
	branch := Branch{Kind: Recirculated, Why: "the pass recirculates the packet", Track: frame.track, Lookup: frame.found}
	if frame.track != nil {
		branch.Why = fmt.Sprintf("conntrack of zone %d: %s", frame.track.Zone, frame.subject.Meta.Flags)
	}
	return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) { return s.resume(ctx, id, 0, frame, at) })
}

// resume runs the pass that resumes a recirculation; hash is 0 for none.
func (s *step) resume(ctx context.Context, id uint32, hash int, frame frame, at count) (*Hop, *State, error) {
	packet := recirculated(id, hash, frame)
	passes := passesOf(s.printed, id, packet)
	if passes != nil {
		s.tracer.passes.Put(s.host.Name, s.hop.Bridge, packet, passes[0])
	} else {
		var err error
		if passes, err = s.ask(ctx, s.host, s.hop.Bridge, packet); err != nil {
			return nil, s.state, err
		}
	}
	return s.nextStep(passes, packet, at).run(ctx, passes[0], frame, s.state)
}

// nextStep returns the step of the pass with which a packet resumes on the same node.
func (s *step) nextStep(passes []*pass.Pass, packet flow.Packet, at count) *step {
	passes[0].Resume(s.hop.Pass)
	hop := &Hop{Node: s.hop.Node, Bridge: s.hop.Bridge, Port: s.hop.Port}
	made := &query{host: s.host, before: s.query, bridge: s.hop.Bridge, packet: packet}
	return &step{walk: s.walk, host: s.host, hop: hop, query: made, printed: passes[1:], count: at}
}

// recirculated returns the packet as the datapath recirculates it, with its metadata.
func recirculated(id uint32, hash int, frame frame) flow.Packet {
	var packet flow.Packet
	packet.Set("recirc_id", fmt.Sprintf("%#x", id))
	if hash != 0 {
		packet.Set("dp_hash", fmt.Sprintf("%#x", hash))
	}
	if meta := frame.subject.Meta; meta.Tracked {
		packet.Set("ct_state", meta.Flags.String())
		if meta.Zone != 0 {
			packet.Set("ct_zone", fmt.Sprint(meta.Zone))
		}
		if meta.Mark != 0 {
			packet.Set("ct_mark", fmt.Sprintf("%#x", meta.Mark))
		}
		if meta.Label != "" {
			packet.Set("ct_label", meta.Label)
		}
		setOriginal(&packet, meta)
	}
	for _, field := range frame.subject.Packet.Fields() {
		if field.Name != "in_port" {
			packet.Set(field.Name, field.Value)
		}
	}
	return packet
}

// setOriginal sets the tuple of the connection's original direction.
func setOriginal(packet *flow.Packet, meta conntrack.Meta) {
	original := meta.Orig
	if !original.Src.IsValid() || meta.Flags.Inv {
		return
	}
	src, dst := "ct_nw_src", "ct_nw_dst"
	if original.Src.Is6() {
		src, dst = "ct_ipv6_src", "ct_ipv6_dst"
	}
	packet.Set(src, original.Src.String())
	packet.Set(dst, original.Dst.String())
	packet.Set("ct_nw_proto", fmt.Sprint(original.Proto))
	packet.Set("ct_tp_src", fmt.Sprint(original.SrcPort))
	packet.Set("ct_tp_dst", fmt.Sprint(original.DstPort))
}

// passesOf returns the pass of a recirculation and the passes after it, if ovs-vswitchd has
// already printed them for the same packet; nil otherwise.
func passesOf(printed []*pass.Pass, id uint32, packet flow.Packet) []*pass.Pass {
	for i, p := range printed {
		if p.ID == id && isPassOf(p, packet) {
			return printed[i:]
		}
	}
	return nil
}

// isPassOf reports whether a pass that ovs-vswitchd printed by itself is a pass of the packet.
// Such passes lack the original tuple of the connection, so one that depends on it is not.
func isPassOf(printed *pass.Pass, packet flow.Packet) bool {
	for _, name := range []string{"ct_nw_", "ct_tp_", "ct_ipv6_"} {
		if strings.Contains(printed.Megaflow, name) {
			return false
		}
	}
	for _, name := range []string{"ct_state", "ct_zone", "ct_mark", "ct_label", "dp_hash"} {
		if printed.Flow.Get(name) != packet.Get(name) {
			return false
		}
	}
	return printed.Flow.WithoutPipeline().SameHeaders(packet.WithoutPipeline())
}
