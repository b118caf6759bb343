package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
)

// PIDFile returns the path of the file that holds the process ID of d, and that d
// keeps locked while it runs.
func PIDFile(d runtime.Daemon) string { return filepath.Join(d.RunDir, d.Program+".pid") }

// Lock is the state of a file lock.
type Lock struct {
	Held bool
	PID  int // of the holder; 0 where it is in another PID namespace
}

// LockOwner returns the state of the lock that OVS keeps on a pid file, or on the
// lock file of a database, while the daemon runs. The number in a pid file proves
// nothing: process IDs are reused, and zombies accept signals.
func LockOwner(path string) (Lock, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Lock{}, err
	}
	defer func() { _ = f.Close() }()
	query := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &query); err != nil {
		return Lock{}, fmt.Errorf("asking for the lock on %s: %w", path, err)
	}
	if query.Type == unix.F_UNLCK {
		return Lock{}, nil
	}
	return Lock{Held: true, PID: max(int(query.Pid), 0)}, nil
}

// unlocked reports whether the file at path exists without a lock. A process that
// is ending gives up its locks last: unlocked waits for it.
func unlocked(path string) bool {
	const timeout, pause = 2 * time.Second, time.Millisecond
	for deadline := time.Now().Add(timeout); ; time.Sleep(pause) {
		owner, err := LockOwner(path)
		if err != nil || !owner.Held {
			return err == nil
		}
		if !isEnding(owner.PID) || time.Now().After(deadline) {
			return false
		}
	}
}

// isEnding reports whether a process is ending or has ended.
func isEnding(pid int) bool {
	if pid == 0 {
		return false // it can't be seen from here
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return errors.Is(err, os.ErrNotExist) || err == nil && len(words) == 0
}

// RemoveLeftovers removes the files of a daemon that no longer runs. An
// ovsdb-server and an ovs-vswitchd share a directory, so it removes only files of
// the names and types that d makes.
func RemoveLeftovers(d runtime.Daemon) error {
	var failed []error
	remove := func(path string, kind os.FileMode) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != kind {
			return // missing, or not made by a daemon
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, fmt.Errorf("a file that %s left: %w", d.Role, err))
		}
	}
	for _, path := range append(inRunDir(d, isSocket), listens(d)...) {
		remove(path, os.ModeSocket)
	}
	for _, path := range append(DatabaseLocks(d), PIDFile(d), PIDFile(d)+".tmp") {
		if unlocked(path) {
			remove(path, 0)
		}
	}
	return errors.Join(failed...)
}

// ControlSockets returns the sockets at which d, or a d that ran before, takes the
// commands of ovs-appctl.
func ControlSockets(d runtime.Daemon) []string { return inRunDir(d, isControlSocket) }

// inRunDir returns the paths in d's directory whose names match.
func inRunDir(d runtime.Daemon, matches func(d runtime.Daemon, name string) bool) []string {
	entries, err := os.ReadDir(d.RunDir)
	if err != nil {
		return nil // the daemon reports problems of its directory itself
	}
	var paths []string
	for _, entry := range entries {
		if matches(d, entry.Name()) {
			paths = append(paths, filepath.Join(d.RunDir, entry.Name()))
		}
	}
	return paths
}

func isControlSocket(d runtime.Daemon, name string) bool {
	return strings.HasPrefix(name, d.Program+".") && strings.HasSuffix(name, ".ctl")
}

func isSocket(d runtime.Daemon, name string) bool {
	if d.Program == "ovs-vswitchd" && (strings.HasSuffix(name, ".mgmt") || strings.HasSuffix(name, ".snoop")) {
		return true
	}
	return isControlSocket(d, name)
}

// listens returns the sockets that d's arguments make it listen at.
func listens(d runtime.Daemon) []string {
	var paths []string
	for _, arg := range d.Args {
		if path, ok := strings.CutPrefix(strings.TrimPrefix(arg, "--remote="), "punix:"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// DatabaseLocks returns the lock files of d's databases.
func DatabaseLocks(d runtime.Daemon) []string {
	if d.Program != "ovsdb-server" {
		return nil
	}
	var paths []string
	for _, arg := range d.Args {
		if filepath.IsAbs(arg) {
			paths = append(paths, filepath.Join(filepath.Dir(arg), "."+filepath.Base(arg)+".~lock~"))
		}
	}
	return paths
}
