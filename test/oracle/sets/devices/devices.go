// Package devices puts frames into network devices of the kernel, and reads the frames
// that come out of them. A device can be in another network namespace.
package devices

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Device is an open device. A frame that is sent enters the kernel as if a cable had
// brought it; through a socket, as if this machine had sent it.
type Device struct {
	fd   int
	name string
	tap  bool
	both bool // of a socket: it also reads what this machine sends
}

// Frame is a frame that was read.
type Frame struct {
	Bytes []byte
	Sent  bool // by this machine, through the device of Watch; else the device received it
}

const (
	// largest is the size of the largest frame that is read.
	largest = 1 << 16
	// waiting is how many bytes of frames, with what the kernel adds to each, can wait in a
	// socket until they are read.
	waiting = 64 << 20
)

// Tap opens the other end of a tap, as a hypervisor does for a VM. Network is the path of
// a network namespace.
func Tap(network, name string) (*Device, error) {
	d := &Device{fd: -1, name: name, tap: true}
	err := within(network, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		d.fd = fd
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	})
	return d.opened(network, err)
}

// Socket opens a packet socket on a device, which reads what the device receives.
func Socket(network, name string) (*Device, error) {
	return socket(network, &Device{fd: -1, name: name})
}

// Watch opens a packet socket on a device, which reads what the device receives and what this machine sends
// through it.
func Watch(network, name string) (*Device, error) {
	return socket(network, &Device{fd: -1, name: name, both: true})
}

func socket(network string, d *Device) (*Device, error) {
	err := within(network, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		d.fd = fd
		// The kernel takes the tag of a VLAN out of the frame, and tells it beside.
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waiting); err != nil {
			return err
		}
		device, err := net.InterfaceByName(d.name)
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in the network's order
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
	})
	return d.opened(network, err)
}

func (d *Device) opened(network string, err error) (*Device, error) {
	if err != nil {
		if d.fd >= 0 {
			err = errors.Join(err, d.Close())
		}
		return nil, fmt.Errorf("device %s of network namespace %s: %w", d.name, network, err)
	}
	return d, nil
}

// Close closes the device. It stays in its network namespace.
func (d *Device) Close() error { return unix.Close(d.fd) }

// Send puts a frame in. Its error says that the kernel refused it, as it refuses one that
// is larger than the MTU of a socket's device.
func (d *Device) Send(frame []byte) error {
	if _, err := unix.Write(d.fd, frame); err != nil {
		return fmt.Errorf("device %s: send %d bytes: %w", d.name, len(frame), err)
	}
	return nil
}

// Receive returns the frames that came out since the last call. It is an error if the kernel
// dropped some because too many waited.
func (d *Device) Receive() ([]Frame, error) {
	var frames []Frame
	for {
		frame, err := d.next()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return frames, d.complete()
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN): // a socket tells once that its device is down
		case err != nil:
			return frames, fmt.Errorf("device %s: receive: %w", d.name, err)
		case frame.Bytes != nil:
			frames = append(frames, frame)
		}
	}
}

// complete returns an error if a socket has lost frames since the last call.
func (d *Device) complete() error {
	if d.tap {
		return nil
	}
	counts, err := unix.GetsockoptTpacketStats(d.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && counts.Drops > 0 {
		err = fmt.Errorf("%d frames were lost because too many waited to be read", counts.Drops)
	}
	if err != nil {
		return fmt.Errorf("device %s: receive: %w", d.name, err)
	}
	return nil
}

// next returns the next frame, without bytes for one that the device does not read.
func (d *Device) next() (Frame, error) {
	frame := make([]byte, largest)
	if d.tap {
		n, err := unix.Read(d.fd, frame)
		return Frame{Bytes: frame[:max(n, 0)]}, err
	}
	extra := make([]byte, unix.CmsgSpace(auxiliarySize))
	n, extraSize, _, from, err := unix.Recvmsg(d.fd, frame, extra, 0)
	if err != nil {
		return Frame{}, err
	}
	at, ok := from.(*unix.SockaddrLinklayer)
	sent := ok && at.Pkttype == unix.PACKET_OUTGOING
	if !ok || sent && !d.both {
		return Frame{}, nil
	}
	whole, err := withTag(frame[:n], extra[:extraSize])
	return Frame{whole, sent}, err
}

// within runs a function in a network namespace.
func within(network string, do func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	there, err := os.Open(network)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // the thread stays locked: it ends with the goroutine
	}
	runtime.UnlockOSThread()
	return err
}
