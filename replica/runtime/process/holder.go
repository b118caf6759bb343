//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"time"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// holder is the process of a running daemon.
type holder struct {
	pid      int    // 0 for a process in another PID namespace
	evidence string // the locked file or the socket that shows it; "" if no process runs
}

// findHolder returns the process of the daemon: the one that holds the lock on its pid file or,
// if that file was deleted, the one that listens at its control socket.
func findHolder(d runtime.Daemon) (holder, error) {
	pid, held, err := daemon.LockOwner(daemon.PIDFile(d))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return holder{}, fmt.Errorf("%s: %w", d.Role, err)
	}
	if held {
		return holder{pid: pid, evidence: daemon.PIDFile(d)}, nil
	}
	for _, path := range daemon.ControlSockets(d) {
		if pid, _, ok := daemon.Listener(path); ok {
			return holder{pid: pid, evidence: path}, nil
		}
	}
	return holder{}, nil
}

// checkFree returns an ErrRunning if the daemon runs or another process has its database open. It waits
// for a process that is ending, which has no arguments any more by which killAll finds it, and
// releases its locks last.
func checkFree(d runtime.Daemon) error {
	const timeout, pause = 2 * time.Second, time.Millisecond
	for deadline := time.Now().Add(timeout); ; time.Sleep(pause) {
		h, err := findHolder(d)
		if err != nil {
			return err
		}
		for _, path := range daemon.DatabaseLocks(d) {
			if pid, held, _ := daemon.LockOwner(path); h.evidence == "" && held {
				h = holder{pid: pid, evidence: path}
			}
		}
		if h.evidence == "" {
			return nil
		}
		if !daemon.IsEnding(h.pid) || time.Now().After(deadline) {
			return fmt.Errorf("%s: %w: process %d holds %s", d.Role, runtime.ErrRunning, h.pid, h.evidence)
		}
	}
}
