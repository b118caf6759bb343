//go:build !linux

package daemon

import "net"

// Listener reports whether a process listens at a socket. Its process ID is not
// available on this system.
func Listener(path string) (pid int, ok bool) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return 0, false
	}
	_ = conn.Close()
	return 0, true
}
