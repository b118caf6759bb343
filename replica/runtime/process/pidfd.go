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

// errGone is the error of a process that has ended, or whose ID was reused.
var errGone = errors.New("the process is gone")

// process is a handle of one process, which stays valid where its ID is reused.
type process struct {
	pid int
	fd  int
}

// openProcess opens a handle of a process. It calls same afterwards, which reports
// whether the process is still the one that the caller means.
func openProcess(pid int, same func() bool) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	p := &process{pid: pid, fd: fd}
	if !same() {
		p.close()
		return nil, errGone
	}
	return p, nil
}

func (p *process) close() { _ = unix.Close(p.fd) }

func (p *process) signal(s unix.Signal) error {
	err := unix.PidfdSendSignal(p.fd, s, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %v to process %d: %w", s, p.pid, err)
	}
	return nil
}

// wait returns true once p has ended, false after the timeout.
func (p *process) wait(ctx context.Context, timeout time.Duration) (bool, error) {
	deadline := time.Now().Add(timeout)
	for {
		left := max(min(time.Until(deadline), pollInterval), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("waiting for process %d: %w", p.pid, err)
		case n > 0:
			return true, nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("waiting for process %d: %w", p.pid, ctx.Err())
		case !time.Now().Before(deadline):
			return false, nil
		}
	}
}
