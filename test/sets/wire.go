package sets

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
)

// fabric is the name of the switch that stands for the cables between nodes.
const fabric = "fabric"

// wire puts frames into a running set and catches what comes out.
type wire struct {
	dir    string // the folder of the running set
	ports  []Port
	tails  []*tail
	nodes  []string // and the fabric
	sent   []*step  // by number; the first is nil
	shared []string // MACs that two ports of a bridge share
	macs   macs     // what bridges had learned at the capture
}

// tail reads the frames that were appended to the recording of a port.
type tail struct {
	port   Port
	file   string
	offset int64
}

const (
	// quiet is how many times all daemons have to answer without that a port sends
	// anything before the network is at rest: each answer is a turn of the main loop, in
	// which a switch moves its packets on.
	quiet = 8
	// patience is how long to wait for what should come out.
	patience = 3 * time.Second
)

func newWire(dir string, ports []Port, nodes []string) *wire {
	w := &wire{dir: dir, ports: ports, nodes: append(slices.Clone(nodes), fabric), sent: []*step{nil}}
	for _, p := range ports {
		w.tails = append(w.tails, &tail{port: p, file: filepath.Join(w.home(p.Node), "pcap", p.Name+".pcap"), offset: pcapHeader})
	}
	return w
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

// send puts the frame of a step in, waits until nothing moves, and files what came out.
func (w *wire) send(ctx context.Context, s *step) error {
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
	raw, err := f.bytes(s.ID)
	if err != nil {
		return err
	}
	s.marks = read(raw)
	i := slices.IndexFunc(w.ports, func(p Port) bool { return p.Label == f.from })
	if i < 0 {
		return fmt.Errorf("packet %d: the set has no port with the label %q", s.ID, f.from)
	}
	port := w.ports[i]
	s.Node, s.Bridge, s.Port, s.From, s.Bytes, s.Size = port.Node, port.Bridge, port.Name, f.from, hex.EncodeToString(raw), len(raw)
	if w.macs != nil {
		now, err := w.learned(ctx)
		if err != nil {
			return err
		}
		s.moved = w.macs.moved(now, w.shared)
	}
	if err := w.known(ctx, s.macs); err != nil {
		return fmt.Errorf("packet %d (%s): %w", s.ID, s.Shows, err)
	}
	// Each packet is translated anew, with what the switches have learned until then.
	for _, node := range w.nodes {
		if _, err := w.ask(ctx, node, "dpctl/del-flows"); err != nil {
			return err
		}
	}
	if _, err := w.ask(ctx, port.Node, "netdev-dummy/receive", port.Name, s.Bytes); err != nil {
		return err
	}
	return w.settle(ctx, s)
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
	for end := time.Now().Add(patience); ; {
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
		if _, err := w.ask(ctx, s.Node, "netdev-dummy/receive", s.Port, s.Bytes); err != nil {
			return err
		}
	}
	return w.settle(ctx, &step{})
}

// settle files what comes out until nothing more does.
func (w *wire) settle(ctx context.Context, s *step) error {
	end := time.Now().Add(patience)
	for still := 0; still < quiet; still++ {
		for _, node := range w.nodes {
			if _, err := w.ask(ctx, node, "version"); err != nil {
				return err
			}
		}
		n, err := w.collect(s)
		if err != nil {
			return err
		}
		if n > 0 || (!s.arrived() && time.Now().Before(end)) {
			still = -1
		}
	}
	return ctx.Err()
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
// whose number it has, or with the current one. It returns the number of frames.
func (w *wire) collect(current *step) (int, error) {
	n := 0
	for _, t := range w.tails {
		frames, err := t.read()
		if err != nil {
			return n, err
		}
		for _, raw := range frames {
			if w.file(current, t.port, raw) {
				n++
			}
		}
	}
	return n, nil
}

func (w *wire) file(current *step, p Port, raw []byte) bool {
	m := read(raw)
	s := current
	own := m.number != 0 && m.number < len(w.sent)
	switch {
	case own:
		s = w.sent[m.number]
		own = !m.answers(s.marks)
	case m.announce && !current.marks.announce:
		return false // routers announce their addresses whenever they like
	case m.kind == "arp" && current.marks.kind == "arp":
		own = strings.Contains(hex.EncodeToString(raw), current.arpPart())
	}
	o := Output{Node: p.Node, Bridge: p.Bridge, Port: p.Name, Label: p.Label, Role: p.Role, Bytes: hex.EncodeToString(raw), Own: own}
	if p.Role == roleUnderlay || m.tunnelled {
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

const (
	pcapHeader = 24
	pcapRecord = 16
)

// read returns the frames that were added. A record that is not yet complete stays.
func (t *tail) read() ([][]byte, error) {
	info, err := os.Stat(t.file)
	if errors.Is(err, os.ErrNotExist) || (err == nil && info.Size() <= t.offset) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(t.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	added, err := io.ReadAll(io.NewSectionReader(f, t.offset, info.Size()-t.offset))
	if err != nil {
		return nil, err
	}
	var frames [][]byte
	for len(added) >= pcapRecord {
		length := int(binary.LittleEndian.Uint32(added[8:]))
		if len(added) < pcapRecord+length {
			break
		}
		frames = append(frames, added[pcapRecord:pcapRecord+length])
		added = added[pcapRecord+length:]
		t.offset += int64(pcapRecord + length)
	}
	return frames, nil
}

func decode(digits string) ([]byte, error) { return hex.DecodeString(digits) }
