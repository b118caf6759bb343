package sets

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tapEnd is the other end of a tap of a VM, which a relay keeps. Frames have their length in front.
type tapEnd struct {
	port     Port
	socket   string
	fd       int // -1 until it is used
	received []byte
}

const lengthOfFrame = 2

func (t *tapEnd) open() error {
	if t.fd >= 0 {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	t.fd = fd
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: t.socket}); err != nil {
		return fmt.Errorf("the tap of %s: %w", t.port.Label, err)
	}
	return nil
}

// put lets the VM send a frame.
func (t *tapEnd) put(frame []byte) error {
	if err := t.open(); err != nil {
		return err
	}
	whole := append(binary.BigEndian.AppendUint16(nil, uint16(len(frame))), frame...)
	n, err := unix.Write(t.fd, whole)
	if err == nil && n < len(whole) {
		err = errors.New("the relay does not take a frame")
	}
	return err
}

// take returns the frames that the VM got.
func (t *tapEnd) take() ([][]byte, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	for part := make([]byte, 1<<16); ; {
		n, _, err := unix.Recvfrom(t.fd, part, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil || n == 0 {
			return nil, errors.Join(fmt.Errorf("the tap of %s has no relay any more", t.port.Label), err)
		}
		t.received = append(t.received, part[:n]...)
	}
	var frames [][]byte
	for len(t.received) >= lengthOfFrame {
		end := lengthOfFrame + int(binary.BigEndian.Uint16(t.received))
		if len(t.received) < end {
			break
		}
		frames = append(frames, t.received[lengthOfFrame:end:end])
		t.received = t.received[end:]
	}
	return frames, nil
}

func (t *tapEnd) close() error {
	if t.fd < 0 {
		return nil
	}
	return unix.Close(t.fd)
}
