package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/frame"
	"ovs-offline/trace/names"
)

// Sent is a packet of a capture file, and what becomes of it. Packets that are equal are
// one Sent.
type Sent struct {
	Packets int            `json:"packets"`
	Flow    string         `json:"flow"`
	Answer  *answer.Answer `json:"answer,omitempty"`
	Error   string         `json:"error,omitempty"` // why the packet could not be followed
}

// Captured is what a capture file holds of one sender.
type Captured struct {
	Sent []*Sent `json:"sent"`
	// Others and Unread count the packets of other senders, and those that can't be read.
	Others int `json:"others,omitempty"`
	Unread int `json:"unread,omitempty"`
}

// maxCaptured bounds the packets of a capture that differ.
const maxCaptured = 10_000

// Capture follows the packets of a capture file, in the formats pcap and pcapng, that From
// has sent: those with its MAC address. They are followed in their order, with the
// connections that earlier ones left. Without To, a packet is expected to come out
// anywhere.
func (s *Session) Capture(ctx context.Context, b Between, file io.Reader) (*Captured, error) {
	from, err := s.names.Find(b.From, names.Filter{Network: b.Network})
	if err != nil {
		return nil, err
	}
	n := s.nodes[from.Node]
	if n == nil || from.MAC == "" {
		return nil, fmt.Errorf("%w: %s has no port on a node of the set", ErrQuestion, from.Name)
	}
	port, ok := n.Attached(from.LogicalPort)
	if !ok {
		return nil, fmt.Errorf("%w: node %s has no interface with iface-id %s", ErrQuestion, n.Name, from.LogicalPort)
	}
	arrived := anywhere
	if b.To != "" {
		to, _, err := s.destination(b)
		if err != nil {
			return nil, err
		}
		arrived = at(to)
	}
	next, err := packets(file)
	if err != nil {
		return nil, err
	}
	c := &capture{Session: s, start: follow.Start{Node: n.Name, InPort: port.Name}, arrived: arrived, sender: from.MAC, seen: map[string]*Sent{}}
	for ctx.Err() == nil {
		raw, err := next()
		if errors.Is(err, io.EOF) {
			return &c.Captured, nil
		}
		if err != nil {
			return nil, err
		}
		if err := c.packet(ctx, raw); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// capture is a capture file on its way.
type capture struct {
	*Session
	Captured
	start   follow.Start
	arrived func(*follow.Hop, follow.Branch) bool
	sender  string
	seen    map[string]*Sent
	state   *follow.State
}

func (c *capture) packet(ctx context.Context, raw []byte) error {
	f, err := frame.Parse(raw)
	switch {
	case err != nil:
		c.Unread++
		return nil
	case !strings.EqualFold(f.Packet.Get("dl_src"), c.sender):
		c.Others++
		return nil
	}
	text := f.Packet.Input()
	if known := c.seen[text]; known != nil {
		known.Packets++
		return nil
	}
	if len(c.Sent) == maxCaptured {
		return fmt.Errorf("more than %d different packets: select some with a filter of tcpdump", maxCaptured)
	}
	sent := &Sent{Packets: 1, Flow: text}
	c.seen[text] = sent
	c.Sent = append(c.Sent, sent)
	start := c.start
	start.Packet, start.Size, start.ID, start.State = f.Packet, f.Size, f.ID, c.state
	if f.Quoted != nil {
		start.Quoted, start.QuotedID = &f.Quoted.Packet, f.Quoted.ID
	}
	var w *writer
	a, err := c.whole(func() (*answer.Answer, error) {
		w = c.writer(start.Node+" "+start.InPort+": "+text, c.arrived)
		return w.answer, w.follow(ctx, start)
	})
	if err != nil {
		sent.Error = err.Error()
		return ctx.Err()
	}
	sent.Answer, c.state = a, w.state
	return nil
}

// packets returns a function that returns the next packet of a capture file, and io.EOF
// after the last one.
func packets(file io.Reader) (func() ([]byte, error), error) {
	in := bufio.NewReader(file)
	magic, err := in.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("not a capture file: %w", err)
	}
	var source gopacket.PacketDataSource
	var link func() layers.LinkType
	if string(magic) == "\x0a\x0d\x0d\x0a" { // the block type of a pcapng section header
		r, err := pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, err
		}
		source, link = r, r.LinkType
	} else {
		r, err := pcapgo.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("not a capture file: %w", err)
		}
		source, link = r, r.LinkType
	}
	if link() != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("the capture file has packets of link type %v, not of Ethernet: capture on one interface, not on any", link())
	}
	return func() ([]byte, error) {
		raw, _, err := source.ReadPacketData()
		return raw, err
	}, nil
}
