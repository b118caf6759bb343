package daemon

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Listener reports whether a process listens at a socket, and the IDs of the process
// and its user: 0 and -1 if they are unknown. It opens the directory first,
// because the address of a socket holds at most 107 bytes.
func Listener(path string) (pid, uid int, ok bool) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, -1, false
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, -1, false
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path))})
	if err != nil {
		return 0, -1, errors.Is(err, unix.EAGAIN) // it listens, but is busy
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, -1, true
	}
	return int(peer.Pid), int(peer.Uid), true
}
