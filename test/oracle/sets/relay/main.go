// Relay keeps a network namespace of a lab's node, and joins its devices with ports of the node's Open
// vSwitch. It runs in the namespace, which ends with it:
//
//	unshare --net relay --pidfile FILE --control SOCKET [--listen PORT,...] DEVICE=SOCKET...
//
// It makes each device as a tap; of a device that is there already it takes what comes in, as a switch in the
// kernel does. A dummy interface of Open vSwitch connects to the socket, and sends and
// takes frames with their length in front. At each request at the control socket, the relay answers with the number of
// frames that it has moved, as soon as no further frame waits. A request is '?', or '!' with an IP packet and its length in
// front, which the relay sends as a process of the namespace. On the ports of --listen it takes TCP
// connections, as the metadata proxy of a router does, or pods in the network of their node.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	pidfile := flag.String("pidfile", "", "where to write the number of the process")
	control := flag.String("control", "", "the socket that answers with the number of moved frames")
	listen := flag.String("listen", "", "TCP ports to take connections on, with commas between them")
	flag.Parse()
	if err := run(*pidfile, *control, *listen, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(pidfile, control, ports string, pairs []string) error {
	r := &relay{}
	for _, pair := range pairs {
		device, socket, _ := strings.Cut(pair, "=")
		if err := r.join(device, socket); err != nil {
			return fmt.Errorf("device %s: %w", device, err)
		}
	}
	for port := range strings.FieldsFuncSeq(ports, func(c rune) bool { return c == ',' }) {
		server, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		defer server.Close()
	}
	if err := os.WriteFile(pidfile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		return err
	}
	var err error
	if r.control, err = listener(control); err != nil {
		return err
	}
	return r.serve()
}

// listener returns a listening Unix socket, which appears under its name once it listens.
func listener(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	new := path + ".new"
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: new}); err != nil {
		return -1, fmt.Errorf("socket %s: %w", filepath.Base(path), err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		return -1, err
	}
	return fd, os.Rename(new, path)
}

// open makes a tap and returns its other end, or returns a socket on a device that is there.
func open(name string) (int, error) {
	if device, err := net.InterfaceByName(name); err == nil {
		return packets(device)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// packets returns a socket that takes what a device receives, and sends by it.
func packets(device *net.Interface) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return -1, err
	}
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in the network's order
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
}
