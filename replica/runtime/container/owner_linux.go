package container

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// SocketOwner returns the user ID of the process that listens at a socket: 0 for an
// engine with root's privileges.
func SocketOwner(path string) (uid int, err error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, fmt.Errorf("the owner of %s: %w", path, failed)
	}
	return int(peer.Uid), nil
}
