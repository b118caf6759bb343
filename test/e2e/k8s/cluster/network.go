package cluster

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Network is the path of a network namespace; "" is that of this process.
type Network string

// NetworkOf returns the network namespace of a process.
func NetworkOf(pid int) Network { return Network(fmt.Sprintf("/proc/%d/ns/net", pid)) }

// Do calls f in the network namespace. Sockets that f makes stay there.
func (n Network) Do(f func() error) error {
	if n == "" {
		return f()
	}
	done := make(chan error)
	go func() {
		// The thread ends with this function, because it is never unlocked.
		runtime.LockOSThread()
		done <- n.enter(f)
	}()
	return <-done
}

func (n Network) enter(f func() error) error {
	file, err := os.Open(string(n))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("%s: %w", n, err)
	}
	return f()
}

// listen listens in the network namespace.
func (n Network) listen(address string) (l net.Listener, err error) {
	err = n.Do(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// dial makes a connection of a Hop in the network namespace.
func (n Network) dial(address string) (c net.Conn, err error) {
	err = n.Do(func() error {
		c, err = dialer.Dial("tcp", address)
		return err
	})
	return c, err
}

// Own reports whether the network namespace is that of this process.
func (n Network) Own() (bool, error) {
	here, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return false, err
	}
	there, err := os.Stat(string(n))
	return err == nil && os.SameFile(here, there), err
}
