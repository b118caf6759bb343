package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// relay moves frames between taps and the ports of a switch.
type relay struct {
	pairs   []*pair
	control int   // the listening socket
	asking  []int // connections to it
	moved   uint64
}

// pair is a tap and the connection to its port.
type pair struct {
	device            string
	tap, listen, port int    // port is -1 until the switch has connected
	received          []byte // from the port: the beginning of a frame
}

// largest is the size of the largest frame: its length has two bytes.
const largest = 1 << 16

// prefix is the size of the length in front of a frame.
const prefix = 2

func (r *relay) join(device, socket string) error {
	p := &pair{device: device, port: -1}
	var err error
	if p.tap, err = open(device); err != nil {
		return err
	}
	r.pairs = append(r.pairs, p)
	p.listen, err = listener(socket)
	return err
}

// serve moves frames until the process is ended. Those that wait come before questions.
func (r *relay) serve() error {
	for {
		ready, err := r.wait()
		if err != nil {
			return err
		}
		before := r.moved
		for _, p := range r.pairs {
			if err := p.serve(ready, &r.moved); err != nil {
				return fmt.Errorf("device %s: %w", p.device, err)
			}
		}
		if r.moved == before {
			r.answer(ready)
		}
	}
}

// wait returns the descriptors that can be read.
func (r *relay) wait() (map[int]bool, error) {
	fds := []unix.PollFd{{Fd: int32(r.control), Events: unix.POLLIN}}
	add := func(fd int) {
		if fd >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	for _, p := range r.pairs {
		add(p.tap)
		add(p.listen)
		add(p.port)
	}
	for _, fd := range r.asking {
		add(fd)
	}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		return nil, err
	}
	ready := map[int]bool{}
	for _, f := range fds {
		if f.Revents != 0 {
			ready[int(f.Fd)] = true
		}
	}
	return ready, nil
}

// serve moves what waits at a tap and its port.
func (p *pair) serve(ready map[int]bool, moved *uint64) error {
	if ready[p.listen] {
		if err := p.accept(); err != nil {
			return err
		}
	}
	if ready[p.tap] {
		if err := p.leave(moved); err != nil {
			return err
		}
	}
	if p.port >= 0 && ready[p.port] {
		return p.enter(moved)
	}
	return nil
}

// accept takes the connection of the switch, in place of an earlier one.
func (p *pair) accept() error {
	fd, _, err := unix.Accept4(p.listen, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	if p.port >= 0 {
		if err := unix.Close(p.port); err != nil {
			return err
		}
	}
	p.port, p.received = fd, nil
	return nil
}

// leave sends the frames that left the namespace to the switch. Until the switch has connected they are lost,
// as with a cable that is not plugged in.
func (p *pair) leave(moved *uint64) error {
	for {
		frame := make([]byte, prefix+largest)
		n, err := unix.Read(p.tap, frame[prefix:])
		if errors.Is(err, unix.EAGAIN) || err != nil && lost(err) {
			return nil
		}
		if err != nil {
			return err
		}
		*moved++
		if p.port < 0 {
			continue
		}
		binary.BigEndian.PutUint16(frame, uint16(n))
		if err := writeAll(p.port, frame[:prefix+n]); err != nil {
			return err
		}
	}
}

func writeAll(fd int, bytes []byte) error {
	for len(bytes) > 0 {
		n, err := unix.Write(fd, bytes)
		if err != nil {
			return err
		}
		bytes = bytes[n:]
	}
	return nil
}

// enter gives the frames of the switch to the namespace.
func (p *pair) enter(moved *uint64) error {
	part := make([]byte, largest)
	n, err := unix.Read(p.port, part)
	if err != nil {
		return err
	}
	if n == 0 {
		fd := p.port
		p.port = -1
		return unix.Close(fd)
	}
	p.received = append(p.received, part[:n]...)
	for len(p.received) >= prefix {
		end := prefix + int(binary.BigEndian.Uint16(p.received))
		if len(p.received) < end {
			break
		}
		*moved++
		if _, err := unix.Write(p.tap, p.received[prefix:end]); err != nil && !lost(err) {
			return err
		}
		p.received = p.received[end:]
	}
	return nil
}

// lost reports whether an error means that a device does not take a frame: it is down, or the frame is too short
// or too long.
func lost(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)
}

// answer answers each connection that asks with the number of moved frames.
func (r *relay) answer(ready map[int]bool) {
	var left []int
	for _, fd := range r.asking {
		if !ready[fd] || reply(fd, r.moved) {
			left = append(left, fd)
		}
	}
	r.asking = left
	if !ready[r.control] {
		return
	}
	if fd, _, err := unix.Accept4(r.control, unix.SOCK_CLOEXEC); err == nil {
		r.asking = append(r.asking, fd)
	}
}

// reply answers one question, and reports whether more can follow.
func reply(fd int, moved uint64) bool {
	question := make([]byte, 1)
	n, err := unix.Read(fd, question)
	if err == nil && n == 1 && question[0] == '!' {
		err = send(fd)
	}
	if err == nil && n == 1 {
		err = writeAll(fd, binary.BigEndian.AppendUint64(nil, moved))
		if err == nil {
			return true
		}
	}
	_ = unix.Close(fd) // the asker has gone
	return false
}

// send reads a packet of IPv4 with its length in front, and sends it as a process of the namespace does. What the
// kernel refuses is lost, as for any process.
func send(from int) error {
	length, err := readAll(from, prefix)
	if err != nil {
		return err
	}
	packet, err := readAll(from, int(binary.BigEndian.Uint16(length)))
	if err != nil {
		return err
	}
	const header = 20
	if len(packet) < header {
		return errors.New("a packet without a header")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	_ = unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: [4]byte(packet[16:header])})
	return unix.Close(fd)
}

// readAll reads a number of bytes.
func readAll(fd, size int) ([]byte, error) {
	bytes := make([]byte, size)
	for read := 0; read < size; {
		n, err := unix.Read(fd, bytes[read:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		read += n
	}
	return bytes, nil
}
