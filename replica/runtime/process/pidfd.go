//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pollInterval is the interval at which a wait for a process checks its context.
const pollInterval = 50 * time.Millisecond

// end sends signals to a process one after the other, each with a timeout, and reports
// whether the process has ended. The handle of a process stays valid if its ID is
// reused; same, which is called once the handle is open, reports whether it is the
// process that the caller means.
func end(ctx context.Context, pid int, same func() bool, timeout time.Duration, signals ...unix.Signal) (ended bool, err error) {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(handle) }()
	if !same() {
		return true, nil
	}
	for _, signal := range signals {
		if err := unix.PidfdSendSignal(handle, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, fmt.Errorf("signal %v to process %d: %w", signal, pid, err)
		}
		if ended, err = wait(ctx, handle, timeout); err != nil {
			return false, fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		if ended {
			return true, nil
		}
	}
	return false, nil
}

// wait returns true once a process has ended, false after the timeout.
func wait(ctx context.Context, handle int, timeout time.Duration) (bool, error) {
	for deadline := time.Now().Add(timeout); ; {
		left := max(min(time.Until(deadline), pollInterval), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, int(left.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, err
		case n > 0:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case !time.Now().Before(deadline):
			return false, nil
		}
	}
}
