//go:build linux

package keeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
)

// processPriority is the priority of packets that are sent as those of a process: by it the chains of the kernel know
// what to trace. It is none that the kernel gives a packet by itself.
const processPriority = 0x6f766f66

// sendAsProcess sends the packet in a frame as a process of the namespace does, and returns what the kernel did with it.
func (s *space) sendAsProcess(ctx context.Context, frame []byte) (*linux.Passage, error) {
	packet, ok := packetIn(frame)
	source, destination, known := addresses(frame)
	if !ok || !known {
		return nil, errors.New("a process sends packets of IPv4 and IPv6 only")
	}
	p := &linux.Passage{}
	s.mark = 0
	if err := sendPacket(packet); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: a rule drops it
		what := fmt.Sprintf("of %s to %s, which a process sends", source, destination)
		switch {
		case errors.Is(err, unix.EMSGSIZE):
			p.Remarks = append(p.Remarks, "the MTU is less than the packet "+what)
		case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
			p.Remarks = append(p.Remarks, fmt.Sprintf("there is no route for the packet %s: %v", what, err))
		default:
			return nil, fmt.Errorf("sending the packet %s: %w", what, err)
		}
		return p, nil
	}
	s.collect(ctx, p, false)
	return p, nil
}

// packetIn returns the IP packet in a frame, without what makes a short frame long enough for Ethernet; ok is false
// if its header is not whole.
func packetIn(frame []byte) (packet []byte, ok bool) {
	const header4, header6 = 20, 40
	packet = frame[ethernetHeader:]
	least, size := header4, 0
	switch {
	case len(packet) >= header4 && packet[0]>>4 == 4:
		size = int(binary.BigEndian.Uint16(packet[2:]))
	case len(packet) >= header6 && packet[0]>>4 == 6:
		least, size = header6, header6+int(binary.BigEndian.Uint16(packet[4:]))
	}
	packet = packet[:min(len(packet), size)]
	return packet, len(packet) >= least
}

// sendPacket sends an IP packet with its own header.
func sendPacket(packet []byte) error {
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_HDRINCL
	var to unix.Sockaddr
	if packet[0]>>4 == 6 {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_HDRINCL
		to = &unix.SockaddrInet6{Addr: [16]byte(packet[24:40])}
	} else {
		to = &unix.SockaddrInet4{Addr: [4]byte(packet[16:20])}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, processPriority); err != nil {
		return err
	}
	return unix.Sendto(fd, packet, 0, to)
}
