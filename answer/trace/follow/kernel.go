package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	wire "ovs-offline/answer/trace/frame"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/replica/linux"
	"ovs-offline/workdir/netns"
)

// intoKernel continues in the kernel of the node, which the frame enters by a device.
func (s *step) intoKernel(ctx context.Context, device host.Device, branch Branch, frame frame) error {
	branch.Kind, branch.Why = Internal, fmt.Sprintf("%s of %s", device.Name, netns.Title(device.Namespace))
	if why := s.unmarked(device, frame); why != "" {
		frame.unsure = append(frame.unsure[:len(frame.unsure):len(frame.unsure)], why)
	}
	return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
		return s.enterKernel(ctx, s.host, device, frame, s.state, at)
	})
}

// unmarked describes as an uncertain part of a packet that Open vSwitch gave it a mark, which a frame in a device of the
// replica does not have; it returns "" for a packet without one, and where nothing in the namespace asks for marks.
func (s *step) unmarked(device host.Device, frame frame) string {
	mark, err := strconv.ParseUint(frame.subject.Packet.Get("pkt_mark"), 0, 32)
	if err != nil || mark == 0 || s.host.Conntrack.Userspace || !s.host.AsksForMarks(device.Namespace) {
		return ""
	}
	return fmt.Sprintf("the packet enters %s with the mark %#x, for which rules there ask, and the replica's has none", netns.Title(device.Namespace), mark)
}

// enterKernel puts a frame into a device of a namespace, and continues with what comes out.
func (w *walk) enterKernel(ctx context.Context, node *host.Host, device host.Device, arrived frame, state *State, at count) (*Hop, *State, error) {
	w.passes++
	title := netns.Title(device.Namespace)
	hop := &Hop{Node: node.Name, Bridge: title, Port: portFor(node, device), Kernel: true, Namespace: device.Namespace, VRF: node.VRFOf(device), Packet: arrived.packet()}
	s := &kernelStep{step: step{walk: w, host: node, hop: hop, state: state, count: at}, device: device, sentTCP: tcpFlagsOf(arrived, node.Name, state)}
	err := s.run(ctx, arrived)
	return hop, s.state, err
}

// portFor returns a device of a namespace as a port, with the iface-id and the number of the port of Open vSwitch that
// it belongs to.
func portFor(node *host.Host, device host.Device) *host.Port {
	port := &host.Port{Bridge: netns.Title(device.Namespace), Name: device.Name, Type: "internal", IfaceID: node.IfaceIDOf(device)}
	if of, ok := node.PortOf(device); ok {
		port.IfaceID, port.MAC, port.Number = of.IfaceID, of.MAC, of.Number
	}
	return port
}

// kernelStep is one pass through a namespace.
type kernelStep struct {
	step
	device  host.Device
	put     []linux.Sent // the frames of this pass
	sentTCP string       // the TCP flags of the frame that was put in, "" if the packet has its own
}

// run puts the frame in, and follows what comes out.
func (s *kernelStep) run(ctx context.Context, frame frame) error {
	raw, err := bytesOf(frame, s.sentTCP)
	if err != nil {
		return err
	}
	passage, err := s.send(ctx, s.device.Name, raw)
	if err != nil {
		return err
	}
	s.hop.Pass = passIn(s.hop.Bridge, passage)
	if asked := requestIn(passage); asked != nil && !aboutMAC(frame.packet()) {
		answered, ok, err := s.resolve(ctx, asked, passage.Local, frame)
		if !ok || err != nil {
			return err
		}
		answered.Local = answered.Local || passage.Local
		passage = answered
	}
	s.state = s.state.send(s.host.Name, s.put[0], passage.Connections)
	s.hop.Assumed = append(s.host.Doubts(s.device.Namespace), s.countingRules()...)
	if len(passage.Out) > 0 {
		s.hop.Assumed = append(s.hop.Assumed, passage.Remarks...)
	}
	return s.comeOut(ctx, passage, frame)
}

// counting matches rules of iptables and nft that decide by chance, or by what they counted before.
var counting = lazyregexp.New(`-m (?:statistic|limit|hashlimit|connlimit|recent|quota)\b|\b(?:numgen|limit rate|ct count|quota)\b`)

// countingRules returns sentences about the rules of the pass that decide by chance, or by what they counted before.
func (s *kernelStep) countingRules() (all []string) {
	for _, stage := range s.hop.Pass.Stages {
		if counting.MatchString(stage.Flow) {
			all = append(all, fmt.Sprintf("a rule of %s decides by chance, or by what it has counted: %s", s.hop.Bridge, stage.Flow))
		}
	}
	return all
}

// send puts a frame into a device of the namespace, after the frames that the pass put in before. It finds the
// connections that the question opened in the namespaces of the node.
func (s *kernelStep) send(ctx context.Context, device string, raw []byte) (linux.Passage, error) {
	frame := linux.Sent{Namespace: s.device.Namespace, Frame: linux.Frame{Device: device, Bytes: raw}}
	question := linux.Question{Namespace: frame.Namespace, Frame: frame.Frame, Earlier: s.put, New: s.tracer.options.New || s.tracer.options.States != nil}
	for _, earlier := range s.state.sentInto(s.host.Name) {
		for _, connection := range earlier.opened {
			question.Opened = append(question.Opened, linux.Opened{Namespace: earlier.frame.Namespace, Connection: connection})
		}
	}
	passage, err := s.host.Through(ctx, question)
	s.put = append(s.put, frame)
	return passage, err
}

// comeOut continues with each frame that came out of a device of the namespace.
func (s *kernelStep) comeOut(ctx context.Context, passage linux.Passage, came frame) error {
	for _, out := range passage.Out {
		read, err := wire.Parse(out.Bytes)
		if err != nil {
			return fmt.Errorf("the frame that came out of %s: %w", out.Device, err)
		}
		if name := reaction(read, came); name != "" {
			if !passage.Local && name != redirect { // which the sender gets beside the packet's way, and not each time
				s.addReaction(name, came)
			}
			continue
		}
		if err := s.leaveKernel(ctx, host.Device{Namespace: s.device.Namespace, Name: out.Device}, s.changed(came, read), passage.Mark); err != nil {
			return err
		}
	}
	switch {
	case s.hop.hasOutcome():
	case passage.Local:
		s.addReceived(came)
	case passage.Unreachable != "":
		s.addReaction(icmpError+": "+passage.Unreachable+" unreachable", came)
	default:
		s.add(s.lost(passage, came), came)
	}
	return nil
}

// addReceived adds the end of a packet that the namespace itself receives.
func (s *kernelStep) addReceived(came frame) {
	protocols := map[uint8]string{flow.TCP: "tcp", flow.UDP: "udp"}
	number, _ := came.packet().Protocol()
	if who := s.host.ListenersFor(s.device, protocols[number]); protocols[number] != "" && who != "" {
		s.hop.Assumed = append(s.hop.Assumed, who)
	}
	if s.hop.VRF != "" && s.hop.Port.Number != 0 {
		s.hop.Assumed = append(s.hop.Assumed, fmt.Sprintf("what %s answers leaves by %s, as the packet came", s.hop.Bridge, s.device.Name))
	}
	s.add(Branch{Kind: Delivered, Port: s.hop.Port, Why: "it is for " + s.hop.Bridge + " itself"}, came)
}

// changed returns the frame as it came out, with what is known of the packet besides its headers.
func (s *kernelStep) changed(came frame, read wire.Frame) frame {
	subject := conntrack.Subject{Packet: read.Packet, ID: read.ID, Headless: read.Headless}
	if s.sentTCP != "" {
		subject.Packet.DeleteFunc(func(field string) bool { return field == "tcp_flags" })
	}
	if came.packet().Get(flowLabel) != read.Packet.Get(flowLabel) {
		subject.Packet.DeleteFunc(func(field string) bool { return field == flowLabel })
	}
	if read.Quoted != nil {
		subject.Quoted = &conntrack.Subject{Packet: read.Quoted.Packet, ID: read.Quoted.ID}
	}
	left := came.asReceived()
	left.subject, left.mayFragment = subject, read.MayFragment
	if why := s.randomPort(came, read); why != "" {
		left.unsure = append(left.unsure[:len(left.unsure):len(left.unsure)], why)
	}
	return left
}

// flowLabel is the field of IPv6 that a kernel leaves as it is in a packet that it sends on. In a packet of its own
// it is a hash with a secret that each machine has for itself, so that of a replica is not that of the node.
const flowLabel = "ipv6_label"

// randomPort describes that a rule of the pass chose the source port of a packet at random, as an uncertain part
// of the packet; it returns "" for another packet.
func (s *kernelStep) randomPort(came frame, left wire.Frame) string {
	before, after := came.packet().Get("tp_src"), left.Packet.Get("tp_src")
	random := func(stage pass.Stage) bool { return strings.Contains(stage.Flow, "--random") }
	if before == after || !slices.ContainsFunc(s.hop.Pass.Stages, random) {
		return ""
	}
	return fmt.Sprintf("%s chooses the source port at random", s.hop.Bridge)
}

// leaveKernel continues where a device of the namespace leads. mark is that of the frame.
func (s *kernelStep) leaveKernel(ctx context.Context, device host.Device, frame frame, mark uint32) error {
	branch := Branch{Kind: Internal, Port: portFor(s.host, device), Why: fmt.Sprintf("it leaves by %s of %s", device.Name, s.hop.Bridge)}
	if port, ok := s.host.PortOf(device); ok {
		branch.Port = port
		return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
			return s.enter(ctx, s.host, port, s.marked(mark), frame, s.state, at)
		})
	}
	if peer, ok := s.host.PeerOf(device); ok {
		return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
			return s.enterKernel(ctx, s.host, peer, frame, s.state, at)
		})
	}
	for _, node := range s.tracer.hosts {
		if other, ok := elsewhere(node, s.host, frame.packet().Get("dl_dst")); ok {
			branch.Why += fmt.Sprintf(" and arrives at %s of node %s", other.Name, node.Name)
			return s.proceed(ctx, branch, frame, func(at count) (*Hop, *State, error) {
				return s.enterKernel(ctx, node, other, frame.asReceived(), s.state, at)
			})
		}
	}
	out := Branch{Kind: Delivered, Port: portFor(s.host, device), Why: fmt.Sprintf("it leaves by device %s of %s", device.Name, s.hop.Bridge)}
	if out.Port.IfaceID == "" { // not to a VM
		out.Networks = []string{"of device " + device.Name}
	}
	s.add(out, frame)
	return nil
}

// marked returns the metadata of a frame with a mark, as it enters Open vSwitch: in the kernel it is the same packet
// there, and its mark is pkt_mark. The datapath of userspace gets bytes.
func (s *kernelStep) marked(mark uint32) (metadata flow.Packet) {
	if mark != 0 && !s.host.Conntrack.Userspace {
		metadata.Set("pkt_mark", fmt.Sprintf("%#x", mark))
	}
	return metadata
}

// elsewhere returns the device with a MAC address that another node has in its own namespace, and no bridge of Open
// vSwitch: a network that is not recorded joins both nodes.
func elsewhere(node, from *host.Host, mac string) (device host.Device, ok bool) {
	if node == from {
		return device, false
	}
	for _, found := range node.WithMAC(mac) {
		if device, ok = node.OwnDevice(found.Name); ok && found == device {
			return device, true
		}
	}
	return host.Device{}, false
}

// addReaction adds the end of a packet that the kernel refuses with an answer.
func (s *kernelStep) addReaction(name string, came frame) {
	branch := Branch{Kind: Generated, Why: s.hop.Bridge + " answers with " + name, Response: &Response{Name: name}, Stage: lastRule(s.hop.Pass), Loss: s.lossBy(name)}
	if t, ok := conntrack.TupleOf(came.packet(), 0); ok {
		branch.Response.To = t.Src.String()
	}
	s.add(branch, came)
}

// lossBy returns why the kernel lost a packet that it answers with an error of a name.
func (s *kernelStep) lossBy(name string) Loss {
	last := lastRule(s.hop.Pass)
	switch {
	case last != nil && strings.Contains(strings.ToLower(last.Flow), "reject"):
		return ByRule
	case strings.HasSuffix(name, "exceeded"):
		return Expired
	case strings.HasSuffix(name, "fragmentation needed"), strings.HasSuffix(name, "too big"):
		return TooLarge
	case strings.HasSuffix(name, "address unreachable"), strings.HasSuffix(name, "host unreachable"):
		return NoAddress
	}
	return Unrouted
}

// redirect is the ICMP error that tells a sender of a better way.
const redirect = icmpError + ": redirect"

// reaction names what the kernel made of a packet in place of sending it on: an ICMP error or a TCP reset;
// it returns "" for the packet itself, and for an answer to it.
func reaction(out wire.Frame, came frame) string {
	packet := came.packet()
	number, _ := out.Packet.Protocol()
	switch number {
	case flow.ICMP, flow.ICMPv6:
		kind, _ := out.Packet.Number("icmp_type")
		code, _ := out.Packet.Number("icmp_code")
		if out.Quoted != nil && came.subject.Quoted == nil {
			return icmpErrorName(int(kind), int(code), number == flow.ICMPv6)
		}
	case flow.TCP:
		if strings.Contains(out.Packet.Get("tcp_flags"), "rst") && !strings.Contains(packet.Get("tcp_flags"), "rst") {
			return "a TCP reset"
		}
	}
	return ""
}

// lost returns the end of a packet that did not come out of the namespace.
func (s *kernelStep) lost(passage linux.Passage, came frame) Branch {
	branch := Branch{Kind: Dropped, Stage: lastRule(s.hop.Pass), Why: strings.Join(passage.Remarks, "; ")}
	ttl, hasTTL := came.packet().Number("nw_ttl")
	switch {
	case slices.ContainsFunc(passage.Steps, func(step linux.Step) bool { return step.Verdict == "drop" }):
		branch.Loss, branch.Why = ByRule, "a rule of "+s.hop.Bridge+" drops it"
	case passage.Unknown != "":
		branch.Kind, branch.Why = Undetermined, passage.Unknown
	case came.packet().EtherType() == flow.ARP:
		branch.Loss, branch.Why = NoAddress, s.hop.Bridge+" does not answer for the address"
	case len(passage.Steps)+len(passage.Reached) == 0:
		branch.Loss = NotTaken
		branch.Why = cmp.Or(branch.Why, fmt.Sprintf("the device %s of %s does not take it", s.device.Name, s.hop.Bridge))
	case hasTTL && ttl <= 1:
		branch.Loss, branch.Why = Expired, "the TTL has expired"
	case branch.Why != "":
		branch.Loss = Unrouted
	default:
		branch.Loss, branch.Why = Unknown, "the kernel sends it nowhere"
	}
	return branch
}

// passIn returns the rules that a frame met in a namespace as the stages of a pass.
func passIn(namespace string, passage linux.Passage) *pass.Pass {
	made := &pass.Pass{}
	for _, met := range passage.Steps {
		made.Stages = append(made.Stages, pass.Stage{Bridge: namespace, Chain: met.Table + " " + met.Chain, Flow: met.Rule, Lines: []string{met.Verdict}})
	}
	return made
}

// lastRule returns the last stage of a pass, nil for a pass without any.
func lastRule(met *pass.Pass) *pass.Stage {
	if len(met.Stages) == 0 {
		return nil
	}
	return &met.Stages[len(met.Stages)-1]
}

// bytesOf returns a frame as a device takes it. flags are the TCP flags of a packet that has none.
func bytesOf(arrived frame, flags string) ([]byte, error) {
	written := wire.Frame{Packet: arrived.packet(), ID: arrived.subject.ID, Size: arrived.size, MayFragment: arrived.mayFragment}
	if flags != "" {
		written.Packet.Set("tcp_flags", flags)
	}
	if ttl, _ := written.Packet.Number("nw_ttl"); ttl == 0 && written.Packet.EtherType() != flow.ARP {
		written.Packet.Set("nw_ttl", usualTTL)
	}
	if quoted := arrived.subject.Quoted; quoted != nil {
		written.Quoted = &wire.Frame{Packet: quoted.Packet, ID: quoted.ID}
	}
	return written.Bytes()
}

// usualTTL is the TTL of a packet whose TTL is not given.
const usualTTL = "64"

// tcpFlagsOf returns the TCP flags with which a packet that has none is put into a namespace: those of the
// first packet of a connection, or of the answer to a packet that the question put in before; "" for
// another packet.
func tcpFlagsOf(arrived frame, node string, state *State) string {
	packet := arrived.packet()
	number, _ := packet.Protocol()
	if flags := packet.Get("tcp_flags"); number != flow.TCP || flags != "" && flags != "0" {
		return ""
	}
	to, ok := conntrack.TupleOf(packet, 0)
	for _, earlier := range state.sentInto(node) {
		before, err := wire.Parse(earlier.frame.Frame.Bytes)
		if err != nil || !ok {
			continue
		}
		if from, ok := conntrack.TupleOf(before.Packet, 0); ok && from.Proto == flow.TCP && from.SrcPort == to.DstPort && from.DstPort == to.SrcPort {
			return "syn|ack"
		}
	}
	return "syn"
}
