package follow

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	wire "ovs-offline/answer/trace/frame"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/pkg/ovsdb"
)

// frame is a packet in the datapath.
type frame struct {
	subject conntrack.Subject
	size    int
	tunnel  *odp.Tunnel     // of the next output
	pushed  *odp.PushTunnel // the packet is encapsulated, up to the end of the list
	sent    bool            // the encapsulated packet has left
	track   *odp.Track      // the last ct action
	found   *Lookup
	hashed  bool // dp_hash was computed for the next recirculation
	unsure  []string
	// firstSize is the size of the first fragment of the packet's datagram, the largest unit
	// that the kernel makes of the datagram; 0 if not given.
	firstSize int
	// network is the physical network from which the packet entered the node, "" for none, and
	// sender its source MAC address then.
	network, sender string
	mayFragment     bool // a router may send it in fragments
}

// packet returns the packet without metadata.
func (f frame) packet() flow.Packet { return f.subject.Packet.Headers() }

// enter starts the first pass on a node. metadata has the fields of the tunnel that the
// packet came by.
func (w *walk) enter(ctx context.Context, node *host.Host, port *host.Port, metadata flow.Packet, frame frame, state *State, at count) (*Hop, *State, error) {
	packet := entering(port, metadata, frame)
	passes, err := w.ask(ctx, node, port.Bridge, packet)
	if err != nil {
		return nil, state, err
	}
	hop := &Hop{Node: node.Name, Bridge: port.Bridge, Port: port}
	step := step{walk: w, host: node, hop: hop, printed: passes[1:], query: &query{host: node, bridge: port.Bridge, packet: packet}, count: at}
	frame.subject.Meta = conntrack.Meta{}
	return step.run(ctx, passes[0], frame, state)
}

// entering returns the packet of a frame with its input port and metadata.
func entering(port *host.Port, metadata flow.Packet, frame frame) flow.Packet {
	packet := frame.subject.Packet.Clone()
	for _, field := range metadata.Fields() {
		packet.Set(field.Name, field.Value)
	}
	packet.Prepend("in_port", fmt.Sprint(port.Number))
	return packet
}

// ask returns the passes that ofproto/trace prints of a packet.
func (w *walk) ask(ctx context.Context, node *host.Host, bridge string, packet flow.Packet) ([]*pass.Pass, error) {
	if packet.DoubleTagged() {
		return askFrame(ctx, node, bridge, packet)
	}
	replica := node.Replaced()
	name := fmt.Sprintf("%s\x00%d", node.Name, replica) // passes of another replica have other recirculations
	known, done, err := w.tracer.passes.Await(ctx, name, bridge, packet)
	if err != nil {
		return nil, err
	}
	if known != nil {
		return []*pass.Pass{known}, nil
	}
	defer done()
	// Without --names ovs-vswitchd takes two thirds of the time.
	passes, err := askPasses(ctx, node, bridge, packet.Input())
	if err != nil {
		return nil, err
	}
	if node.Replaced() == replica {
		w.tracer.passes.Put(name, bridge, packet, passes[0])
	}
	return passes, nil
}

// askFrame asks about the packet as a frame, since text can't express two VLAN tags. Metadata
// is text.
func askFrame(ctx context.Context, node *host.Host, bridge string, packet flow.Packet) ([]*pass.Pass, error) {
	raw, err := wire.Frame{Packet: packet}.Bytes()
	if err != nil {
		return nil, err
	}
	untagged := packet.Clone()
	untagged.PopVLAN()
	untagged.PopVLAN()
	return askPasses(ctx, node, bridge, untagged.Input(), hex.EncodeToString(raw))
}

// askPasses runs ofproto/trace on a node and reads what it prints.
func askPasses(ctx context.Context, node *host.Host, arguments ...string) ([]*pass.Pass, error) {
	text, err := node.Ask(ctx, append([]string{"ofproto/trace"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	passes, err := pass.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.Name, err)
	}
	return passes, nil
}

// step is one pass, as its actions are executed.
type step struct {
	*walk
	host        *host.Host
	hop         *Hop
	query       *query
	printed     []*pass.Pass // further passes that ovs-vswitchd printed
	state       *State
	controllers controllerActions
	count
}

// count counts the passes on the way to a step.
type count struct {
	onNode int // recirculations since the packet came to the node
	all    int // of the packet, or since its TTL last fell between two nodes
	ttl    int // of the packet as all began
}

// next returns the count after a branch. Of a loop of routers on several nodes, the end is
// known: the TTL expires.
func (c count) next(branch Branch, packet flow.Packet) count {
	c.all++
	if branch.Kind == Recirculated {
		c.onNode++
		return c
	}
	c.onNode = 0
	if branch.Kind == Tunneled {
		c.onNode = 1 // the datapath of userspace takes a packet out of its tunnel by a recirculation
	}
	if ttl, err := strconv.Atoi(packet.Get("nw_ttl")); err == nil {
		if ttl < c.ttl {
			c.all = 0
		}
		c.ttl = ttl
	}
	return c
}

// run executes the actions of a pass, and returns its hop and the state after it.
func (s *step) run(ctx context.Context, printed *pass.Pass, frame frame, state *State) (*Hop, *State, error) {
	s.passes++
	s.state = state
	if !hidesTag(printed.Flow, frame.subject.Packet) {
		frame.subject.Packet = printed.Flow.WithoutPipeline()
	}
	frame.tunnel, frame.pushed, frame.track, frame.found, frame.hashed = nil, nil, nil, nil, false
	printed, why, err := s.relearn(ctx, printed)
	s.hop.Pass, s.hop.Packet, s.controllers = printed, frame.packet(), controllerActions{pass: printed}
	if err != nil {
		return nil, s.state, err
	}
	if port := s.hop.Port; why == "" && port != nil && port.Unknown == ovsdb.UnknownNumber {
		why = fmt.Sprintf("the OpenFlow number of port %s was not recorded, and flows name ports by it: ovs-ofctl show and dpif/show have it", port.Name)
	}
	if frame.subject.Meta.Unlabelled && strings.Contains(printed.Megaflow, "ct_label=") {
		why = cmp.Or(why, "a flow matches the label of the connection, which conntrack -L does not print: dpctl/dump-conntrack does")
	}
	if why != "" {
		s.addUndetermined(why, frame)
		return s.hop, s.state, nil
	}
	s.state = s.state.learnAddresses(s.host, s.hop.Port, printed, frame.packet())
	if err := s.execute(ctx, printed.Actions, &frame); err != nil {
		return nil, s.state, err
	}
	for _, why := range nativeFailures(s.host, s.hop.Pass) {
		s.addUndetermined(why, frame)
	}
	s.addPauses(frame)
	switch {
	case s.hop.hasOutcome():
	case s.state.learnedFlows() != state.learnedFlows() && endsByLearning(printed):
		if err := s.repeat(ctx, frame); err != nil {
			return nil, s.state, err
		}
	default:
		s.add(dropIn(printed), frame)
	}
	return s.hop, s.state, nil
}

// hidesTag reports whether Open vSwitch reads only the outer one of a packet's two VLAN tags,
// because of other_config:vlan-limit in the Open_vSwitch table. The inner one and what follows
// it, which no flow can change then, stay part of the packet.
func hidesTag(read, packet flow.Packet) bool {
	return packet.DoubleTagged() && !read.DoubleTagged() && read.IsTagged()
}

// add adds a branch with the packet as it is, and returns it.
func (s *step) add(branch Branch, frame frame) *Branch {
	branch.Packet, branch.ID, branch.Size = frame.packet(), frame.subject.ID, frame.size
	if quoted := frame.subject.Quoted; quoted != nil {
		branch.Quoted = &quoted.Packet
	}
	branch.Uncertain = frame.unsure
	branch.State = s.state
	s.hop.Branches = append(s.hop.Branches, branch)
	return &s.hop.Branches[len(s.hop.Branches)-1]
}

// dropIn returns the end of a packet that no action of a pass sends anywhere.
func dropIn(printed *pass.Pass) Branch {
	branch := Branch{Kind: Dropped, Why: "no action sends the packet anywhere"}
	if last, ok := printed.End(); ok {
		branch.Stage = &last
		if last.Miss {
			branch.Why = fmt.Sprintf("no flow of table %d of %s matches", last.Table, last.Bridge)
		}
	}
	switch {
	case printed.Failure == "No recirculation context", printed.Failure == "Recirculation conflict":
		branch.Kind, branch.Why = Undetermined, "the replica forgot the recirculation before it was resumed: its clock runs, which start stops"
	case printed.Failure != "":
		branch.Why = "ovs-vswitchd drops the packet: " + printed.Failure
	case len(printed.Errors) > 0:
		branch.Why = "ovs-vswitchd drops the packet: " + printed.Errors[0]
	case len(printed.SlowPath) > 0 && strings.HasPrefix(printed.SlowPath[0], "Consists of"):
		branch.Kind, branch.Why = Generated, "ovs-vswitchd handles the packet itself: it "+strings.ToLower(printed.SlowPath[0][:1])+printed.SlowPath[0][1:]
	case len(printed.Warnings) > 0:
		branch.Why = printed.Warnings[len(printed.Warnings)-1]
	}
	if branch.Why == pass.LearnIgnored {
		branch.Why = "no action sends the packet anywhere"
	}
	return branch
}

// loopIn returns the end, after a pass, of a packet that its node recirculates again and again.
// It arrives nowhere: the kernel's datapath drops it once it has flows for all passes (the
// length of action_fifo in net/openvswitch/actions.c). Before, each pass goes through
// ovs-vswitchd, and the TTL of a packet that is routed may expire.
func loopIn(printed *pass.Pass) Branch {
	return givenUp(printed, fmt.Sprintf("it still recirculates after %d passes on the node, a loop", maxDepth))
}

// givenUp returns the end, after a pass, of a packet that the datapath gives up on.
func givenUp(printed *pass.Pass, because string) Branch {
	why := "the datapath drops the packet: " + because
	branch := Branch{Kind: Dropped, Why: why, Failure: why}
	if last, ok := printed.End(); ok {
		branch.Stage = &last
	}
	return branch
}

// isBeyond adds the end of a packet that the datapath of userspace recirculates more often than its release does, and
// reports whether the packet goes no further.
func (s *step) isBeyond(at count, frame frame) bool {
	least, most, bounded := s.host.Recirculations()
	switch {
	case !bounded || at.onNode <= least:
		return false
	case at.onNode <= most:
		s.addUndetermined(fmt.Sprintf("the datapath of userspace drops a packet after %d to %d recirculations, by the release of Open vSwitch, which was not recorded", least, most), frame)
	default:
		s.add(givenUp(s.hop.Pass, fmt.Sprintf("that of userspace recirculates one at most %d times on a node", most)), frame)
	}
	return true
}

// addUndetermined adds the end of a packet that may go anywhere, with the cause.
func (s *step) addUndetermined(why string, frame frame) {
	s.add(Branch{Kind: Undetermined, Why: why}, frame)
}

// fail ends a branch with the error of what should have followed.
func (b *Branch) fail(err error) {
	b.Kind, b.Why = Undetermined, err.Error()
	if down, ok := errors.AsType[*host.UnavailableError](err); ok {
		b.Why, b.Absent = down.Text(), down.Node
	}
}

// proceed adds a branch that continues with the hop that next returns. An error of a node
// other than the first costs only the branch, unless the context has ended.
func (s *step) proceed(ctx context.Context, branch Branch, frame frame, next func(count) (*Hop, *State, error)) error {
	after := s.next(branch, frame.packet())
	switch {
	case after.onNode == maxDepth:
		s.add(loopIn(s.hop.Pass), frame)
		return nil
	case branch.Kind == Recirculated && s.isBeyond(after, frame):
		return nil
	case after.all >= maxDepth && branch.Kind != Recirculated:
		s.addUndetermined(fmt.Sprintf("the packet still goes on after %d passes: a loop", maxDepth), frame)
		return nil
	case s.passes >= maxPasses:
		s.addUndetermined(fmt.Sprintf("more than %d passes would be needed", maxPasses), frame)
		return nil
	}
	at := len(s.hop.Branches)
	s.add(branch, frame)
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
