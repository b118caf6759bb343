// Package filter starts programs that can open no sockets but unix sockets, and can't use parts of the kernel that no
// daemon needs: under a seccomp filter (seccomp(2)), which needs no privilege.
package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime/process/landlock"
)

// ErrUnavailable is wrapped if there can be no filter on this system.
var ErrUnavailable = errors.New("a seccomp filter can't be installed")

// Under calls run on a thread of its own that has the filter, the rules of Landlock and no capabilities, and returns the error of run.
// Every process that this thread starts inherits them, and no process can remove them;
// this process as a whole does not have them. Without a filter, Under does not call run, and
// the error wraps ErrUnavailable.
//
// The thread ends when run returns. It may have been in use before, so no process of this
// program may be started with Pdeathsig on a thread that is not its own.
func Under(rules landlock.Rules, run func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		err := dropCapabilities()
		if err == nil {
			err = Install(rules, Unix)
		}
		if err == nil {
			err = run()
		}
		result <- err
	}()
	return <-result
}

// dropCapabilities takes all capabilities from the calling thread. With no_new_privs, a program of root gets none back.
func dropCapabilities() error {
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// Install gives the calling thread the rules and a filter that leaves some sockets, for ever: the caller keeps the goroutine
// on it (runtime.LockOSThread). It uses prctl(2), which the profiles of container engines allow in all versions.
func Install(rules landlock.Rules, sockets Sockets) error {
	code, err := Code(sockets)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("%w: setting no_new_privs: %w", ErrUnavailable, err)
	}
	if errno := landlock.Restrict(rules); errno != 0 {
		return fmt.Errorf("restricting files by Landlock: %w", errno)
	}
	filter := unix.SockFprog{Len: uint16(len(code) / int(unsafe.Sizeof(unix.SockFilter{}))), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	if _, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return fmt.Errorf("%w: %w", ErrUnavailable, errno)
	}
	return nil
}

// Code returns the filter that leaves some sockets as the kernel takes it: an array of struct sock_filter.
func Code(sockets Sockets) ([]byte, error) {
	wanted := audited()
	if wanted == 0 {
		return nil, fmt.Errorf("%w: there is no filter for the architecture %s", ErrUnavailable, runtime.GOARCH)
	}
	raw, err := bpf.Assemble(program(wanted, sockets))
	if err != nil {
		return nil, fmt.Errorf("%w: assembling it: %w", ErrUnavailable, err)
	}
	var code []byte
	for _, instruction := range raw {
		code = append(binary.LittleEndian.AppendUint16(code, instruction.Op), instruction.Jt, instruction.Jf)
		code = binary.LittleEndian.AppendUint32(code, instruction.K)
	}
	return code, nil
}
