package follow

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/internal/unixctl"
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/flow"
	wire "ovs-offline/trace/frame"
	"ovs-offline/trace/host"
	"ovs-offline/trace/odp"
	"ovs-offline/trace/pass"
)

// frame is a packet in the datapath.
type frame struct {
	subject conntrack.Subject
	size    int
	tunnel  *odp.Tunnel     // of the next output
	pushed  *odp.PushTunnel // the packet is encapsulated, up to the end of the list
	sent    bool            // the encapsulated packet has left
	track   *odp.Track      // the last ct action
	found   *Connection
	hashed  bool // dp_hash was computed for the next recirculation
	unsure  []string
	// firstSize is the size of the first fragment of the packet's datagram, the largest unit
	// that the kernel makes of the datagram; 0 if not given.
	firstSize int
}

// packet returns the packet without metadata.
func (f frame) packet() flow.Packet { return f.subject.Packet.Headers() }

// enter starts the first pass on a node. entry has the fields of the tunnel that the
// packet came by.
func (w *walk) enter(ctx context.Context, h *host.Host, port *host.Port, entry flow.Packet, f frame, s *State, at count) (*Hop, *State, error) {
	p := f.subject.Packet.Clone()
	for _, field := range entry.Fields() {
		p.Set(field.Name, field.Value)
	}
	p.Prepend("in_port", fmt.Sprint(port.Number))
	passes, err := w.ask(ctx, h, port.Bridge, p)
	if err != nil {
		return nil, s, err
	}
	hop := &Hop{Node: h.Name, Bridge: port.Bridge, Port: port}
	step := step{walk: w, host: h, hop: hop, known: passes[1:], asked: &asked{bridge: port.Bridge, packet: p}, count: at}
	f.subject.Meta = conntrack.Meta{}
	return step.run(ctx, passes[0], f, s)
}

// ask runs ofproto/trace.
func (w *walk) ask(ctx context.Context, h *host.Host, bridge string, p flow.Packet) ([]*pass.Pass, error) {
	if p.DoubleTagged() {
		return w.askFrame(ctx, h, bridge, p)
	}
	replica := h.Replaced()
	name := fmt.Sprintf("%s\x00%d", h.Name, replica) // passes of another replica have other recirculations
	known, done, err := w.tracer.passes.Await(ctx, name, bridge, p)
	if err != nil {
		return nil, err
	}
	if known != nil {
		return []*pass.Pass{known}, nil
	}
	defer done()
	// Without --names ovs-vswitchd takes two thirds of the time.
	text, err := h.Ask(ctx, "ofproto/trace", bridge, p.Input())
	if err != nil {
		return nil, err
	}
	passes, err := pass.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", h.Name, err)
	}
	if h.Replaced() == replica {
		w.tracer.passes.Put(name, bridge, p, passes[0])
	}
	return passes, nil
}

// askFrame runs ofproto/trace with the packet as a frame, since text can't express two VLAN
// tags. Metadata is text.
func (w *walk) askFrame(ctx context.Context, h *host.Host, bridge string, p flow.Packet) ([]*pass.Pass, error) {
	raw, err := wire.Bytes(p)
	if err != nil {
		return nil, err
	}
	untagged := p.Clone()
	untagged.PopVLAN()
	untagged.PopVLAN()
	text, err := h.Ask(ctx, "ofproto/trace", bridge, untagged.Input(), hex.EncodeToString(raw))
	if err != nil {
		return nil, err
	}
	passes, err := pass.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", h.Name, err)
	}
	return passes, nil
}

// step is one pass, as its actions are executed.
type step struct {
	*walk
	host  *host.Host
	hop   *Hop
	known []*pass.Pass // passes that ovs-vswitchd has printed as well
	asked *asked
	state *State
	// controllers counts the userspace actions of the flows with controller actions, by cookie.
	controllers map[uint64]int
	count
}

// count counts the passes on the way to a step.
type count struct {
	onNode int // since the packet came to the node
	all    int // of the packet, or since its TTL last fell between two nodes
	ttl    int // of the packet as all began
}

// next returns the count after a branch. Of a loop of routers on several nodes, the end is
// known: the TTL expires.
func (c count) next(b Branch, p flow.Packet) count {
	c.all++
	if b.Kind == Recirculated {
		c.onNode++
		return c
	}
	c.onNode = 0
	if ttl, err := strconv.Atoi(p.Get("nw_ttl")); err == nil {
		if ttl < c.ttl {
			c.all = 0
		}
		c.ttl = ttl
	}
	return c
}

// run executes the actions of a pass.
func (s *step) run(ctx context.Context, p *pass.Pass, f frame, state *State) (*Hop, *State, error) {
	s.passes++
	s.state = state
	if !hidesTag(p.Flow, f.subject.Packet) {
		f.subject.Packet = p.Flow.WithoutPipeline()
	}
	f.tunnel, f.pushed, f.track, f.found, f.hashed = nil, nil, nil, nil, false
	p, why, err := s.relearn(ctx, p)
	s.hop.Pass, s.hop.Packet = p, f.packet()
	if err != nil {
		return nil, s.state, err
	}
	if why != "" {
		s.undetermined(why, f)
		return s.hop, s.state, nil
	}
	if err := s.execute(ctx, p.Actions, &f); err != nil {
		return nil, s.state, err
	}
	for _, why := range nativeFailures(s.hop.Pass) {
		s.undetermined(why, f)
	}
	s.pauses(f)
	switch {
	case s.hasOutcome():
	case s.state.flows() != state.flows() && s.endsByLearning():
		if err := s.repeat(ctx, f); err != nil {
			return nil, s.state, err
		}
	default:
		s.drop(f)
	}
	return s.hop, s.state, nil
}

// hidesTag reports whether Open vSwitch reads only the outer one of a packet's two VLAN tags,
// as other_config:vlan-limit of the Open_vSwitch table says. The inner one and what follows
// it, which no flow can change then, stay part of the packet.
func hidesTag(read, packet flow.Packet) bool {
	return packet.DoubleTagged() && !read.DoubleTagged() && read.IsTagged()
}

func (s *step) add(b Branch, f frame) *Branch {
	b.Packet, b.ID, b.Size = f.packet(), f.subject.ID, f.size
	if q := f.subject.Quoted; q != nil {
		b.Quoted = &q.Packet
	}
	b.Uncertain = f.unsure
	b.State = s.state
	s.hop.Branches = append(s.hop.Branches, b)
	return &s.hop.Branches[len(s.hop.Branches)-1]
}

func (s *step) hasOutcome() bool {
	for _, b := range s.hop.Branches {
		if b.Kind != Copied {
			return true
		}
	}
	return false
}

// drop adds the end of a packet that no action sends anywhere.
func (s *step) drop(f frame) {
	p := s.hop.Pass
	b := Branch{Kind: Dropped, Why: "no action sends the packet anywhere"}
	if last, ok := p.Last(); ok {
		b.Stage = &last
		if last.Miss {
			b.Why = fmt.Sprintf("no flow of table %d of %s matches", last.Table, last.Bridge)
		}
	}
	switch {
	case p.Failure == "No recirculation context", p.Failure == "Recirculation conflict":
		b.Kind, b.Why = Undetermined, "the replica forgot the recirculation before it was resumed: its clock runs, which start stops"
	case p.Failure != "":
		b.Why = "ovs-vswitchd drops the packet: " + p.Failure
	case len(p.Errors) > 0:
		b.Why = "ovs-vswitchd drops the packet: " + p.Errors[0]
	case len(p.SlowPath) > 0 && strings.HasPrefix(p.SlowPath[0], "Consists of"):
		b.Kind, b.Why = Generated, "ovs-vswitchd handles the packet itself: it "+strings.ToLower(p.SlowPath[0][:1])+p.SlowPath[0][1:]
	case len(p.Warnings) > 0:
		b.Why = p.Warnings[len(p.Warnings)-1]
	}
	if b.Why == "suppressing side effects, so learn action ignored" {
		b.Why = "no action sends the packet anywhere"
	}
	s.add(b, f)
}

// circle ends a packet that its node recirculates again and again. It arrives nowhere: the
// datapath of userspace drops it after 5 to 8 times (MAX_RECIRC_DEPTH in lib/dpif-netdev.c of
// Open vSwitch), and that of the kernel once it has flows for all passes (the length of
// action_fifo in net/openvswitch/actions.c). Before, each pass goes through ovs-vswitchd, and
// the TTL of a packet that is routed may expire.
func (s *step) circle(f frame) {
	why := fmt.Sprintf("the datapath drops the packet: it still recirculates after %d passes on the node, a loop", maxDepth)
	b := Branch{Kind: Dropped, Why: why, Failure: why}
	if last, ok := s.hop.Pass.Last(); ok {
		b.Stage = &last
	}
	s.add(b, f)
}

func (s *step) undetermined(why string, f frame) {
	s.add(Branch{Kind: Undetermined, Why: why}, f)
}

// fail ends a branch with the error of what should have followed.
func (b *Branch) fail(err error) {
	b.Kind, b.Why = Undetermined, err.Error()
	if down, ok := errors.AsType[*host.UnavailableError](err); ok {
		b.Why, b.Absent = down.Text(), down.Node
	}
}

// goOn adds a branch that continues with the hop that next returns. An error of a node
// other than the first costs only the branch, unless the context has ended.
func (s *step) goOn(ctx context.Context, b Branch, f frame, next func(count) (*Hop, *State, error)) error {
	after := s.next(b, f.packet())
	switch {
	case after.onNode == maxDepth:
		s.circle(f)
		return nil
	case after.all >= maxDepth && b.Kind != Recirculated:
		s.undetermined(fmt.Sprintf("the packet still goes on after %d passes: a loop", maxDepth), f)
		return nil
	case s.passes >= maxPasses:
		s.undetermined(fmt.Sprintf("more than %d passes would be needed", maxPasses), f)
		return nil
	}
	at := len(s.hop.Branches)
	s.add(b, f)
	hop, state, err := next(after)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if text, refused := unixctl.Refused(err); refused {
		err = fmt.Errorf("ovs-vswitchd refuses the packet: %s", text)
	}
	made := &s.hop.Branches[at]
	if err != nil {
		made.fail(err)
		return nil
	}
	made.Next, s.state, made.State = hop, state, state
	return nil
}
