//go:build linux

package keeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
)

// Bounds of a question. Its frames are as long as a device takes them.
const (
	maxEarlier = 1000
	maxFrame   = 65536
	// ethernetHeader is the length of the header of a frame without a VLAN tag.
	ethernetHeader = 14
	// quiet is how long the kernel may have nothing to say before a frame counts as gone, if neither something came
	// out nor a rule or the node itself took it: nearly everything happens while the frame is written.
	quiet = 4 * time.Millisecond
	// patience bounds the time of one question.
	patience = 150 * time.Millisecond
)

// pass answers a question.
func (k *keeper) pass(q linux.Question) (*linux.Passage, error) {
	if len(q.Earlier) > maxEarlier || len(q.Opened) > maxEarlier {
		return nil, fmt.Errorf("a question has at most %d earlier frames and connections, and this one %d and %d", maxEarlier, len(q.Earlier), len(q.Opened))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var touched []*space
	touch := func(name string) (*space, error) {
		s, err := k.space(name)
		if err == nil && !slices.Contains(touched, s) {
			touched = append(touched, s)
			s.do(func() { s.prepare(q.New) })
		}
		return s, err
	}
	defer func() {
		for _, s := range touched {
			s.do(s.reset)
		}
	}()
	for _, opened := range q.Opened {
		s, err := touch(opened.Namespace)
		if err != nil {
			return nil, err
		}
		s.do(func() { err = s.flows.open(opened.Connection) })
		if err != nil {
			return nil, fmt.Errorf("the connection %s of an earlier question: %w", opened.Connection, err)
		}
	}
	var connections []string
	var passage *linux.Passage
	for _, sent := range append(q.Earlier, linux.Sent{Namespace: q.Namespace, Frame: q.Frame}) {
		s, err := touch(sent.Namespace)
		if err != nil {
			return nil, err
		}
		s.do(func() { passage, err = s.send(ctx, sent.Frame) })
		if err != nil {
			return nil, err
		}
		if sent.Namespace == q.Namespace {
			connections = append(connections, passage.Connections...)
		}
	}
	passage.Connections = latest(connections)
	return passage, nil
}

// latest returns the last text of each connection.
func latest(texts []string) (list []string) {
	at := map[string]int{}
	for _, text := range texts {
		c, err := parseConnection(text)
		if i, known := at[c.key()]; err == nil && known {
			list[i] = text
			continue
		}
		at[c.key()] = len(list)
		list = append(list, text)
	}
	return list
}

// prepare makes the connections those of the capture, and throws away what the kernel did by itself since the last question.
func (s *space) prepare(fresh bool) {
	s.flows.begin(fresh)
	s.readFrames()
	s.drain(func(netlink.Message) {})
}

// reset undoes what the frames of a question left.
func (s *space) reset() {
	s.drain(s.flows.note)
	s.flows.undo()
	s.forgetNeighbours()
	s.readFrames()
}

// send puts a frame into a device and returns what the kernel did with it.
func (s *space) send(ctx context.Context, frame linux.Frame) (*linux.Passage, error) {
	d := s.device(frame.Device)
	switch {
	case len(frame.Bytes) < ethernetHeader || len(frame.Bytes) > maxFrame:
		return nil, fmt.Errorf("a frame has %d to %d bytes, and this one %d", ethernetHeader, maxFrame, len(frame.Bytes))
	case frame.Device == linux.Process:
		return s.sendAsProcess(ctx, frame.Bytes)
	case d == nil:
		return nil, fmt.Errorf("there is no device %q in network namespace %q", frame.Device, s.recorded.Name)
	case d.fd < 0:
		return nil, fmt.Errorf("frames can't be put into %s of network namespace %q, which is a %s: they can at its ports", frame.Device, s.recorded.Name, d.recorded.Kind)
	}
	p := &linux.Passage{}
	if _, err := unix.Write(d.fd, frame.Bytes); err != nil {
		if errors.Is(err, unix.EIO) {
			p.Remarks = append(p.Remarks, frame.Device+" is down: it takes no frames")
			return p, nil
		}
		return nil, fmt.Errorf("putting a frame into %s: %w", frame.Device, err)
	}
	s.mark = 0
	s.collect(ctx, p, noise(frame.Bytes))
	s.explain(p, d, frame.Bytes)
	return p, nil
}

// collect adds what the kernel does with a frame to a passage, until it has nothing more to say.
func (s *space) collect(ctx context.Context, p *linux.Passage, noisy bool) {
	deadline := time.Now().Add(quiet)
	for {
		some, lost := s.drain(func(message netlink.Message) { s.addEvent(p, message) })
		if lost {
			p.Remarks = append(p.Remarks, "the kernel had more to say about the frame than it could keep")
		}
		for _, frame := range s.readFrames() {
			some = true
			if noisy || !noise(frame.Bytes) {
				p.Out = append(p.Out, frame)
			}
		}
		if some {
			deadline = time.Now().Add(quiet)
			continue
		}
		if len(p.Out) > 0 || p.Local || isDropped(p) || time.Now().After(deadline) || ctx.Err() != nil {
			return
		}
		s.wait(time.Until(deadline))
	}
}

// isDropped reports whether a rule has taken the frame.
func isDropped(p *linux.Passage) bool {
	if len(p.Steps) == 0 {
		return false
	}
	last := p.Steps[len(p.Steps)-1].Verdict
	return last == "drop" || last == "stolen" || last == "queue"
}

// addEvent adds a message of netfilter to a passage.
func (s *space) addEvent(p *linux.Passage, message netlink.Message) {
	if !isTrace(message) {
		s.flows.note(message)
		if text := s.flows.describe(message); text != "" {
			p.Connections = append(p.Connections, text)
		}
		return
	}
	t, ok := s.readTrace(message)
	s.mark = max(s.mark, t.mark)
	switch {
	case !ok:
	case t.step.Table != ownTable && t.kind == unix.NFT_TRACETYPE_POLICY:
		if n := len(p.Steps); n > 0 && p.Steps[n-1] == (linux.Step{Family: t.step.Family, Table: t.step.Table, Chain: t.step.Chain, Verdict: "return"}) {
			p.Steps = p.Steps[:n-1] // the end of the chain, whose policy decides
		}
		p.Steps = append(p.Steps, t.step)
	case t.step.Table != ownTable && t.step.Rule == "" && t.step.Verdict == "continue": // the end of a chain, as Linux 6.1 says it
	case t.step.Table != ownTable:
		p.Steps = append(p.Steps, t.step)
	case t.kind == unix.NFT_TRACETYPE_POLICY && !strings.HasPrefix(t.step.Chain, firstChain):
		p.Reached, p.Mark = append(p.Reached, t.step.Chain), t.mark
		p.Local = p.Local || t.step.Chain == "input" && t.step.Family != "bridge"
	}
}

// readFrames returns the frames that came out of all devices.
func (s *space) readFrames() (frames []linux.Frame) {
	buffer := make([]byte, maxFrame+14)
	for _, d := range s.devices {
		for d.fd >= 0 {
			n, err := unix.Read(d.fd, buffer)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			frames = append(frames, linux.Frame{Device: d.recorded.Name, Bytes: slices.Clone(buffer[:n])})
		}
	}
	return frames
}

// wait waits until a device or netfilter has something, or the time is over.
func (s *space) wait(longest time.Duration) {
	fds := []unix.PollFd{{Fd: int32(s.events), Events: unix.POLLIN}}
	for _, d := range s.devices {
		if d.fd >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(d.fd), Events: unix.POLLIN})
		}
	}
	_, _ = unix.Poll(fds, max(1, int(longest.Milliseconds())))
}

// noise reports whether a frame is one that a kernel sends by itself: a report about multicast groups, or a
// solicitation of a router.
func noise(frame []byte) bool {
	if len(frame) < 14 {
		return false
	}
	switch payload := frame[14:]; binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_IP:
		return len(payload) > 9 && payload[9] == unix.IPPROTO_IGMP
	case unix.ETH_P_IPV6:
		const hopByHop, icmp6 = 0, 58
		if len(payload) < 41 {
			return false
		}
		next, rest := payload[6], payload[40:]
		if next == hopByHop && len(rest) > 8 {
			next, rest = rest[0], rest[8:]
		}
		return next == icmp6 && (rest[0] == 143 || rest[0] == 131 || rest[0] == 132 || rest[0] == 133)
	}
	return false
}
