// Package filter starts programs that can open no sockets but unix sockets: under a
// seccomp filter (seccomp(2)), which needs no privilege.
package filter

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ErrUnavailable is wrapped if there can be no filter on this system.
var ErrUnavailable = errors.New("a seccomp filter can't be installed")

// Under calls run on a thread of its own that has the filter, and returns the error of run.
// Every process that this thread starts inherits the filter, and no process can remove it;
// this process as a whole does not have it. Without a filter, Under does not call run, and
// the error wraps ErrUnavailable.
//
// The thread ends when run returns. It may have been in use before, so no process of this
// program may be started with Pdeathsig on a thread that is not its own.
func Under(run func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		err := install()
		if err == nil {
			err = run()
		}
		result <- err
	}()
	return <-result
}

// install gives the calling thread the filter. It uses prctl(2), which the profiles of
// container engines allow in all versions.
func install() error {
	wanted := audited()
	if wanted == 0 {
		return fmt.Errorf("%w: there is no filter for the architecture %s", ErrUnavailable, runtime.GOARCH)
	}
	raw, err := bpf.Assemble(program(wanted))
	if err != nil {
		return fmt.Errorf("%w: assembling it: %w", ErrUnavailable, err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, instruction := range raw {
		code[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("%w: setting no_new_privs: %w", ErrUnavailable, err)
	}
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return fmt.Errorf("%w: %w", ErrUnavailable, errno)
	}
	return nil
}
