package sets

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/unixctl"
)

// Roles of ports.
const (
	roleEdge     = "edge"
	roleUplink   = "uplink"
	roleHost     = "host"
	roleUnderlay = "underlay"

	// roleNamespace is that of a device of a network namespace.
	roleNamespace = "namespace"

	// roleProcess is that of what stands for the processes of a network namespace.
	roleProcess = "process"
)

// noBridge stands for the bridge of a port that is on none.
const noBridge = "-"

// noPort stands for the number of such a port.
const noPort = "-"

// fabric is the name of the switch that stands for the cables between nodes.
const fabric = "fabric"

// cables are the other ends of the ports of a running set.
type cables interface {
	// put puts a frame in at a port.
	put(ctx context.Context, p Port, frame []byte) error
	// take returns the frames that came out since the last time.
	take() ([]caught, error)
	close() error
}

// caught is a frame that came out of a port.
type caught struct {
	port  Port
	frame []byte
	left  bool // the namespace of the port
}

// wire puts frames into a running set and catches what comes out.
type wire struct {
	dir    string // the folder of the running set
	ports  []Port
	cables cables
	nodes  []string // and the fabric
	sent   []*step  // by number; the first is nil
	shared []string // MACs that two ports of a bridge share
	macs   macs     // what bridges had learned at the capture

	relays []*relay // of the nodes' network namespaces
	spaces bool     // packets pass network namespaces of the nodes
	hosts  []host   // that answer when a namespace asks for their MAC

	ofKernel bool   // the datapaths are the kernel's
	seen     string // how many packets they have seen, and how often their threads have waited
}

const (
	// quiet is how many times all daemons have to answer without that a port sends
	// anything before the network is at rest: each answer is a turn of the main loop, in
	// which a switch moves its packets on.
	quiet = 8
	// kernelQuiet is the same for datapaths of the kernel, which move packets on by
	// themselves, and do so while the daemons answer.
	kernelQuiet = 4
	// namespacePatience is the same with network namespaces: the kernel asks for a neighbour
	// for three seconds before it says that it is unreachable.
	namespacePatience = 6 * time.Second
	// patience is how long to wait for what should come out.
	patience = 3 * time.Second
	// kernelPatience is the same in a kernel that an emulated processor runs.
	kernelPatience = 2 * time.Minute
)

// patienceVariable is how many times longer than usual the lab waits.
const patienceVariable = "LAB_PATIENCE"

func newWire(dir string, ports []Port, nodes []string) *wire {
	w := &wire{dir: dir, ports: ports, nodes: append(slices.Clone(nodes), fabric), sent: []*step{nil}}
	w.spaces = slices.ContainsFunc(ports, func(p Port) bool { return p.Role == roleNamespace })
	w.cables = newDummies(w)
	return w
}

// newKernelWire does the same for a set on the kernel's datapath.
func newKernelWire(dir string, ports []Port, nodes []string) (*wire, error) {
	w := newWire(dir, ports, nodes)
	w.ofKernel = true
	var err error
	w.cables, err = newKernel(w)
	return w, err
}

func (w *wire) home(node string) string {
	if node == fabric {
		return filepath.Join(w.dir, fabric)
	}
	return filepath.Join(w.dir, "nodes", node)
}

func (w *wire) ask(ctx context.Context, node string, argv ...string) (string, error) {
	out, err := unixctl.Run(ctx, filepath.Join(w.home(node), "ovs"), "ovs-vswitchd", argv...)
	return string(out), err
}

// send puts the frames of steps in, waits until nothing moves, and files what came out.
func (w *wire) send(ctx context.Context, steps ...*step) error {
	var moved []string
	if w.macs != nil {
		now, err := w.learned(ctx)
		if err != nil {
			return err
		}
		moved = w.macs.moved(now, w.shared)
	}
	var sent []*step
	for _, s := range steps {
		s.moved = moved
		if err := w.prepare(s); err != nil {
			return err
		}
		if s.unsent != nil {
			continue
		}
		sent = append(sent, s)
		if err := w.known(ctx, s.macs); err != nil {
			return fmt.Errorf("packet %d (%s): %w", s.ID, s.Shows, err)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	// Each packet is translated again, with what the switches have learned until then.
	for _, node := range w.nodes {
		if _, err := w.ask(ctx, node, "dpctl/del-flows"); err != nil {
			return err
		}
	}
	for _, s := range sent {
		if err := w.again(ctx, s); err != nil {
			return err
		}
	}
	return w.settle(ctx, sent...)
}

// prepare gives a step its number, its frame and its port.
func (w *wire) prepare(s *step) error {
	s.ID = len(w.sent)
	w.sent = append(w.sent, s)
	for _, first := range s.follows {
		s.After = append(s.After, first.ID)
	}
	f := s.frame
	if f.later != nil {
		var err error
		if f, err = f.later(); err != nil {
			s.unsent = err // the connection was not opened
			return nil
		}
		s.frame = f
	}
	number := s.ID
	if f.fragment != nil {
		s.Datagram = f.fragment.first.ID
		number = s.Datagram
	}
	raw, err := f.bytes(number)
	if err != nil {
		return err
	}
	s.marks = read(raw)
	i := slices.IndexFunc(w.ports, func(p Port) bool { return p.Label == f.from })
	if i < 0 {
		return fmt.Errorf("packet %d: the set has no port with the label %q", s.ID, f.from)
	}
	port := w.ports[i]
	s.port = i
	s.Node, s.Bridge, s.Port, s.From, s.Bytes, s.Size = port.Node, port.Bridge, port.Name, f.from, hex.EncodeToString(raw), len(raw)
	return nil
}

// known waits until each node has flows with these MACs. ovn-controller forgets what it
// learned if it cannot write it to the database at once; then the hosts say it again.
func (w *wire) known(ctx context.Context, macs []string) error {
	const attempts = 5
	for _, node := range w.nodes[:len(w.nodes)-1] {
		for _, mac := range macs {
			for n := 1; ; n++ {
				found, err := w.awaits(ctx, node, mac)
				if err != nil {
					return err
				}
				if found {
					break
				}
				if n == attempts {
					return fmt.Errorf("%s has no flow with %s", node, mac)
				}
				if err := w.remind(ctx, mac); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// awaits reports whether a node has a flow with a MAC, after some time at the latest.
func (w *wire) awaits(ctx context.Context, node, mac string) (bool, error) {
	for end := time.Now().Add(w.patience()); ; {
		flows, err := w.ask(ctx, node, "bridge/dump-flows", "br-int")
		if err != nil || strings.Contains(flows, mac) {
			return err == nil, err
		}
		if time.Now().After(end) {
			return false, nil
		}
	}
}

// remind puts the ARP and ND packets of a host in again.
func (w *wire) remind(ctx context.Context, mac string) error {
	for _, s := range w.sent[1:] {
		if s.frame.src != mac || (s.marks.kind != "arp" && s.marks.kind != "icmp6") {
			continue
		}
		if err := w.again(ctx, s); err != nil {
			return err
		}
	}
	return w.settle(ctx, &step{})
}

// again puts the frame of a step in once more.
func (w *wire) again(ctx context.Context, s *step) error {
	raw, err := decode(s.Bytes)
	if err != nil {
		return err
	}
	return w.cables.put(ctx, w.ports[s.port], raw)
}

// settle files what comes out until nothing more does. What has no number is filed with the
// last of the steps.
func (w *wire) settle(ctx context.Context, steps ...*step) error {
	end := time.Now().Add(w.patience())
	turns := quiet
	if w.ofKernel {
		turns = kernelQuiet
	}
	for still := 0; still < turns; still++ {
		moves, err := w.turn(ctx)
		if err != nil {
			return err
		}
		n, err := w.collect(ctx, steps)
		if err != nil {
			return err
		}
		missing := slices.ContainsFunc(steps, func(s *step) bool { return !s.arrived() })
		late := time.Now().After(end)
		if moves && late && !missing {
			return fmt.Errorf("packet %d (%s): the datapaths are not at rest after %v", steps[0].ID, steps[0].Shows, w.patience())
		}
		if n > 0 || ((moves || missing) && !late) {
			still = -1
		}
	}
	return ctx.Err()
}

// patience is how long to wait for what should come out, and for a network to be at rest.
func (w *wire) patience() time.Duration {
	switch {
	case w.ofKernel:
		return kernelPatience
	case w.spaces:
		return namespacePatience * longer()
	}
	return patience * longer()
}

func longer() time.Duration {
	n, err := strconv.Atoi(os.Getenv(patienceVariable))
	if err != nil {
		return 1
	}
	return time.Duration(n)
}

// turn waits for a turn of the main loop of each daemon that can move a packet on, and
// reports whether something moves that does so by itself: a datapath of the kernel, and the
// threads that answer it.
func (w *wire) turn(ctx context.Context) (moves bool, err error) {
	seen := ""
	for _, node := range w.nodes {
		if !w.ofKernel {
			if _, err := w.ask(ctx, node, "version"); err != nil {
				return false, err
			}
			continue
		}
		busy, count, err := w.turnOfKernel(ctx, node)
		if err != nil {
			return false, err
		}
		moves = moves || busy
		seen += node + count
	}
	for _, r := range w.relays {
		count, err := r.moved()
		if err != nil {
			return false, err
		}
		seen += fmt.Sprint(" ", count)
	}
	moves = moves || seen != w.seen
	w.seen = seen
	return moves, nil
}

// turnOfKernel does the same for a node with a datapath of the kernel. It also returns how
// many packets the datapath has seen, and how often it got answers.
func (w *wire) turnOfKernel(ctx context.Context, node string) (busy bool, count string, err error) {
	// The main loop of ovn-controller wakes its thread: look at that before the turn.
	controlled := w.hasController(node)
	if controlled {
		if busy, _, err = w.working(node, "ovn-controller"); err != nil {
			return false, "", err
		}
	}
	text, err := w.ask(ctx, node, "dpctl/show")
	if err != nil {
		return false, "", err
	}
	_, lookups, _ := strings.Cut(text, "lookups:")
	lookups, _, _ = strings.Cut(lookups, "\n")
	answering, turns, err := w.working(node, "ovs-vswitchd")
	if err != nil {
		return false, "", err
	}
	if controlled {
		_, err = unixctl.Run(ctx, filepath.Join(w.home(node), "ovn"), "ovn-controller", "version")
	}
	return busy || answering, lookups + turns, err
}

func (w *wire) hasController(node string) bool {
	_, err := os.Stat(filepath.Join(w.home(node), "ovn", "ovn-controller.pid"))
	return err == nil
}

// arrived reports whether something came out at each port where the step expects it.
func (s *step) arrived() bool {
	if s.Choice && len(s.to) > 0 {
		return slices.ContainsFunc(s.Outputs, func(o Output) bool { return slices.Contains(s.to, o.Label) })
	}
	for _, label := range s.to {
		if !slices.ContainsFunc(s.Outputs, func(o Output) bool { return o.Label == label }) {
			return false
		}
	}
	return true
}

// collect reads what ports have sent since the last time, and files it with the packet
// whose number it has, or with the last of the steps. It returns the number of frames.
func (w *wire) collect(ctx context.Context, steps []*step) (int, error) {
	current := steps[len(steps)-1]
	list, err := w.cables.take()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range list {
		if w.asked(current, c) {
			if err := w.reply(ctx, c); err != nil {
				return n, err
			}
			n++
		} else if w.file(steps, c) {
			n++
		}
	}
	return n, nil
}

func (w *wire) file(steps []*step, c caught) bool {
	p, raw := c.port, c.frame
	current := steps[len(steps)-1]
	m := read(raw)
	s := current
	own := m.number != 0 && m.number < len(w.sent) && (!w.spaces || numbered(steps, m))
	switch {
	case m.bfd:
		return false
	case !own && 0 < m.quoted && m.quoted < len(w.sent):
		s = w.sent[m.quoted] // an ICMP error about it
	case own:
		if m.number != current.Datagram {
			s = w.sent[m.number]
		}
		own = !m.answers(s.marks)
	case m.announce && !current.marks.announce:
		return false // routers announce their addresses whenever they like
	case m.kind == "arp" && current.marks.kind == "arp":
		own = strings.Contains(hex.EncodeToString(raw), current.arpPart())
	}
	o := Output{Node: p.Node, Bridge: p.Bridge, Port: p.Name, Label: p.Label, Role: p.Role, Bytes: hex.EncodeToString(raw), Own: own, Namespace: p.Namespace, Left: c.left}
	if p.Role == roleNamespace {
		s.Passed = append(s.Passed, o)
	} else if p.Role == roleUnderlay || m.tunnelled {
		s.Tunnels = append(s.Tunnels, o)
	} else {
		s.Outputs = append(s.Outputs, o)
	}
	return true
}

// arpPart returns the body of the ARP packet that was sent, by which it is recognised.
func (s *step) arpPart() string {
	skip := 2 * 14
	if s.frame.vlan != 0 {
		skip += 2 * 4
	}
	return s.Bytes[skip:min(len(s.Bytes), skip+2*28)]
}

func decode(digits string) ([]byte, error) { return hex.DecodeString(digits) }
