package follow

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// untracked returns the metadata of a packet without conntrack.
func (f frame) untracked() conntrack.Meta { return conntrack.Meta{} }

// track executes a ct action. It returns false if the packet can't be followed further.
func (s *step) track(a odp.Track, f *frame) bool {
	node := s.host.Conntrack
	options := s.tracer.options
	node.Assumed = s.assumed
	if options.New || options.States != nil {
		node.Table = nil
	}
	r, err := node.Execute(s.state.tracked(), f.subject, a)
	if err != nil {
		s.undetermined(err.Error(), *f)
		return false
	}
	f.subject, s.state, f.track = r.Subject, s.state.with(r.State), &a
	if r.Subject.Fragment != "" {
		s.hop.Assumed = append(s.hop.Assumed, "all fragments of the datagram arrive, and the first one is the largest")
		f.size = max(f.size, f.firstSize)
	}
	if options.States != nil && !a.Commit {
		flags := conntrack.Flags{New: true}
		if s.looked < len(options.States) {
			flags = options.States[s.looked]
		}
		s.looked++
		f.subject.Meta.Flags = flags
	}
	if r.Uncertain != "" {
		f.unsure = append(f.unsure[:len(f.unsure):len(f.unsure)], r.Uncertain)
	}
	if r.Assumed != "" {
		s.hop.Assumed = append(s.hop.Assumed, r.Assumed)
	}
	f.found = &Connection{Zone: a.Zone, Owner: s.host.Zones[a.Zone], State: f.subject.Meta.Flags.String(), OfQuestion: r.OfQuestion}
	if r.Entry != nil {
		f.found.Entry = r.Entry.String()
	}
	return true
}

// recirculate resumes the packet on the same node.
func (s *step) recirculate(ctx context.Context, id uint32, f frame) error {
	if f.hashed {
		return s.choose(ctx, id, f)
	}
	b := Branch{Kind: Recirculated, Why: "the pass recirculates the packet", Track: f.track, Connection: f.found}
	if f.track != nil {
		b.Why = fmt.Sprintf("conntrack of zone %d: %s", f.track.Zone, f.subject.Meta.Flags)
	}
	return s.goOn(ctx, b, f, func(at count) (*Hop, *State, error) { return s.resume(ctx, id, 0, f, at) })
}

// resume runs the pass that resumes a recirculation; hash is 0 for none.
func (s *step) resume(ctx context.Context, id uint32, hash int, f frame, at count) (*Hop, *State, error) {
	p := resumed(id, hash, f)
	passes := s.printed(id, p)
	if passes != nil {
		s.tracer.passes.Put(s.host.Name, s.hop.Bridge, p, passes[0])
	} else {
		var err error
		if passes, err = s.ask(ctx, s.host, s.hop.Bridge, p); err != nil {
			return nil, s.state, err
		}
	}
	return s.continued(passes, p, at).run(ctx, passes[0], f, s.state)
}

// continued returns the step of a pass on the same node, which a packet resumes.
func (s *step) continued(passes []*pass.Pass, p flow.Packet, at count) *step {
	passes[0].Resume(s.hop.Pass)
	hop := &Hop{Node: s.hop.Node, Bridge: s.hop.Bridge, Port: s.hop.Port}
	asked := &asked{before: s.asked, bridge: s.hop.Bridge, packet: p}
	return &step{walk: s.walk, host: s.host, hop: hop, known: passes[1:], asked: asked, count: at}
}

// resumed returns the packet with what the datapath knows as it recirculates it.
func resumed(id uint32, hash int, f frame) flow.Packet {
	var p flow.Packet
	p.Set("recirc_id", fmt.Sprintf("%#x", id))
	if hash != 0 {
		p.Set("dp_hash", fmt.Sprintf("%#x", hash))
	}
	if m := f.subject.Meta; m.Tracked {
		p.Set("ct_state", m.Flags.String())
		if m.Zone != 0 {
			p.Set("ct_zone", fmt.Sprint(m.Zone))
		}
		if m.Mark != 0 {
			p.Set("ct_mark", fmt.Sprintf("%#x", m.Mark))
		}
		if m.Label != "" {
			p.Set("ct_label", m.Label)
		}
		setOriginal(&p, m)
	}
	for _, field := range f.subject.Packet.Fields() {
		if field.Name != "in_port" {
			p.Set(field.Name, field.Value)
		}
	}
	return p
}

// setOriginal sets the tuple of the connection's original direction.
func setOriginal(p *flow.Packet, m conntrack.Meta) {
	o := m.Orig
	if !o.Src.IsValid() || m.Flags.Inv {
		return
	}
	src, dst := "ct_nw_src", "ct_nw_dst"
	if o.Src.Is6() {
		src, dst = "ct_ipv6_src", "ct_ipv6_dst"
	}
	p.Set(src, o.Src.String())
	p.Set(dst, o.Dst.String())
	p.Set("ct_nw_proto", fmt.Sprint(o.Proto))
	p.Set("ct_tp_src", fmt.Sprint(o.SrcPort))
	p.Set("ct_tp_dst", fmt.Sprint(o.DstPort))
}

// printed returns the pass of a recirculation that ovs-vswitchd has already printed,
// with those after it, if it was made for the same packet; nil otherwise.
func (s *step) printed(id uint32, p flow.Packet) []*pass.Pass {
	for i, known := range s.known {
		if known.ID == id && isSame(known, p) {
			return s.known[i:]
		}
	}
	return nil
}

// isSame reports whether a pass is that of a packet. The passes that ovs-vswitchd prints
// by itself lack the original tuple of the connection, so none will do that depends on
// it.
func isSame(known *pass.Pass, p flow.Packet) bool {
	for _, name := range []string{"ct_nw_", "ct_tp_", "ct_ipv6_"} {
		if strings.Contains(known.Megaflow, name) {
			return false
		}
	}
	for _, name := range []string{"ct_state", "ct_zone", "ct_mark", "ct_label", "dp_hash"} {
		if known.Flow.Get(name) != p.Get(name) {
			return false
		}
	}
	return known.Flow.WithoutPipeline().SameHeaders(p.WithoutPipeline())
}
