package sets

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// say adds a packet of a conversation that takes place after the other packets of the set.
func (p *plan) say(shows string, f frame, to ...string) *step {
	s := &step{Packet: Packet{Shows: shows, Class: Delivered, Choice: len(to) > 1}, frame: f, to: to}
	p.talks = append(p.talks, s)
	return s
}

// converse adds a whole conversation: of TCP from the handshake to both FINs, with a large
// segment in each direction; of other protocols two questions and their answers. A load
// balancer may choose one of several servers.
func (p *plan) converse(shows string, request frame, servers ...string) {
	c := &connection{request: p.say(shows+": the request", request, servers...)}
	client := request.from
	forth := func(what, flags string, size int) {
		p.say(shows+": "+what, sized(c.flagged(flags), size), servers...)
	}
	back := func(what, flags string, size int) {
		p.say(shows+": "+what, sized(c.answered(flags), size), client)
	}
	if request.proto != "tcp" {
		back("the answer", "", 0)
		forth("another request", "", 0)
		back("another answer", "", 0)
		return
	}
	const large = 1400
	back("the server accepts", "SA", 0)
	forth("the client acknowledges", "A", 0)
	back("the server's banner", "AP", 0)
	forth("the client's banner", "AP", 0)
	forth("much data of the client", "A", large)
	back("much data of the server", "A", large)
	forth("the client ends", "FA", 0)
	back("the server ends", "FA", 0)
	forth("the last acknowledgement", "A", 0)
}

// sized returns a later frame with the length of its IP packet, 0 for as it comes.
func sized(f frame, size int) frame {
	later := f.later
	return frame{later: func() (frame, error) {
		f, err := later()
		f.size = size
		return f, err
	}}
}

// Captured returns the path of the capture of the packets of the set's conversations, as
// tcpdump would have taken it at the port with a label.
func (s *Set) Captured(label string) string {
	return filepath.Join(s.Dir, "pcaps", label+".pcap")
}

// talk sends the conversations and writes what passed each port.
func (s *Set) talk(ctx context.Context, w *wire, p *plan) error {
	if len(p.talks) == 0 {
		return nil
	}
	var err error
	if s.Timing.Talks, err = sendAll(ctx, w, p.talks); err != nil {
		return err
	}
	for _, step := range p.talks {
		step.Class = happened(step.Outputs)
		if step.unsent != nil || !step.arrived() {
			s.surprise(step, "did not come out at "+fmt.Sprint(step.to))
		}
	}
	s.Talks = sentOf(p.talks)
	if err := os.MkdirAll(filepath.Dir(s.Captured("")), 0o755); err != nil {
		return err
	}
	for _, port := range s.Ports {
		if port.Role != roleEdge {
			continue
		}
		if err := WriteCapture(s.Captured(port.Label), s.passed(port.Label)); err != nil {
			return err
		}
	}
	return nil
}

// passed returns the frames of the conversations that passed a port, in their order.
func (s *Set) passed(label string) (frames []string) {
	for _, p := range s.Talks {
		if p.From == label {
			frames = append(frames, p.Bytes)
		}
		for _, o := range p.Outputs {
			if o.Label == label {
				frames = append(frames, o.Bytes)
			}
		}
	}
	return frames
}

// WriteCapture writes frames, in hexadecimal digits, as a capture file of tcpdump.
func WriteCapture(path string, frames []string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(262144, layers.LinkTypeEthernet); err != nil {
		return err
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, digits := range frames {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			return err
		}
		at := start.Add(time.Duration(i) * time.Millisecond)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(raw), Length: len(raw)}, raw); err != nil {
			return err
		}
	}
	return nil
}
