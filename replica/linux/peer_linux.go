package linux

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf returns the ID of the process that listens at the other end of a socket, 0 if it is not known.
func peerOf(conn net.Conn) (pid int) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid
}
