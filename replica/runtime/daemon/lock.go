package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
)

// Lock is what is known of a file lock: whether a process holds it, and which.
type Lock struct {
	Held bool
	PID  int // 0 when it can't be seen from here (another pid namespace)
}

// PIDFile is where d keeps its process id, and a lock for as long as it lives.
func PIDFile(d runtime.Daemon) string { return filepath.Join(d.RunDir, d.Program+".pid") }

// LockOwner tells who holds the lock that OVS keeps on a pid file or on a
// database's lock file for as long as the daemon lives. The number written in
// a pid file proves nothing: pids are reused, and zombies answer signals.
func LockOwner(path string) (Lock, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Lock{}, err
	}
	defer func() { _ = f.Close() }() // only read
	query := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &query); err != nil {
		return Lock{}, fmt.Errorf("asking for the lock on %s: %w", path, err)
	}
	if query.Type == unix.F_UNLCK {
		return Lock{}, nil
	}
	return Lock{Held: true, PID: max(int(query.Pid), 0)}, nil
}

// isFree tells whether nobody holds the lock on path. A process that is ending
// has given up its memory, by which it is known, before its locks: such a
// one's are waited for.
func isFree(path string) bool {
	const bound, pause = 2 * time.Second, time.Millisecond
	for deadline := time.Now().Add(bound); ; time.Sleep(pause) {
		owner, err := LockOwner(path)
		if err != nil || !owner.Held {
			return err == nil
		}
		if !isEnding(owner.PID) || time.Now().After(deadline) {
			return false
		}
	}
}

// isEnding tells whether a process is on its way out, or gone.
func isEnding(pid int) bool {
	if pid == 0 {
		return false // nothing is known of it
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return errors.Is(err, os.ErrNotExist) || err == nil && len(words) == 0
}
