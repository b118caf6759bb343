package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
)

// PIDFile returns the path of the file with the process ID of a daemon, which a running daemon
// locks.
func PIDFile(daemon runtime.Daemon) string {
	return filepath.Join(daemon.RunDir, daemon.Program+".pid")
}

// LockOwner reports whether a process holds the lock that OVS keeps on a pid file, or
// on the lock file of a database, and its ID: 0 in another PID namespace. The number
// in a pid file proves nothing: process IDs are reused, and zombies accept signals.
func LockOwner(path string) (pid int, held bool, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = file.Close() }()
	query := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &query); err != nil {
		return 0, false, fmt.Errorf("checking the lock on %s: %w", path, err)
	}
	return max(int(query.Pid), 0), query.Type != unix.F_UNLCK, nil
}

// unlocked reports whether the file at path exists without a lock. A process that is
// ending releases its locks last, so unlocked waits for its end.
func unlocked(path string) bool {
	const timeout, pause = 2 * time.Second, time.Millisecond
	for deadline := time.Now().Add(timeout); ; time.Sleep(pause) {
		pid, held, err := LockOwner(path)
		if err != nil || !held {
			return err == nil
		}
		if !IsEnding(pid) || time.Now().After(deadline) {
			return false
		}
	}
}

// IsEnding reports whether a process is ending or has ended.
func IsEnding(pid int) bool {
	if pid == 0 {
		return false // the process is not visible in this PID namespace
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return errors.Is(err, os.ErrNotExist) || err == nil && len(words) == 0
}

// RemoveLeftovers removes the files of a daemon that no longer runs. An ovsdb-server
// and an ovs-vswitchd share a directory, so it removes only files with the names and
// types of the files that the daemon makes.
func RemoveLeftovers(daemon runtime.Daemon) error {
	var failed []error
	remove := func(path string, kind os.FileMode) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != kind {
			return // missing, or not made by a daemon
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, fmt.Errorf("removing a file that %s left: %w", daemon.Role, err))
		}
	}
	for _, path := range slices.Concat(ControlSockets(daemon), managementSockets(daemon), listens(daemon)) {
		remove(path, os.ModeSocket)
	}
	for _, path := range append(DatabaseLocks(daemon), PIDFile(daemon), PIDFile(daemon)+".tmp") {
		if unlocked(path) {
			remove(path, 0)
		}
	}
	return errors.Join(failed...)
}

// ControlSockets returns the sockets at which the daemon, or an earlier process of it, accepts
// the commands of ovs-appctl.
func ControlSockets(daemon runtime.Daemon) []string { return InRunDir(daemon, daemon.Program+".*.ctl") }

// managementSockets returns the sockets that an ovs-vswitchd makes for its bridges.
func managementSockets(daemon runtime.Daemon) []string {
	if daemon.Program != "ovs-vswitchd" {
		return nil
	}
	return append(InRunDir(daemon, "*.mgmt"), InRunDir(daemon, "*.snoop")...)
}

// InRunDir returns the paths in the daemon's directory whose names match; none if the directory
// can't be read, which the daemon reports itself.
func InRunDir(daemon runtime.Daemon, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(daemon.RunDir), pattern)
	for i, name := range names {
		names[i] = filepath.Join(daemon.RunDir, name)
	}
	return names
}

// listens returns the sockets that the daemon's arguments make it listen at.
func listens(daemon runtime.Daemon) []string {
	var paths []string
	for _, arg := range daemon.Args {
		if path, ok := strings.CutPrefix(strings.TrimPrefix(arg, "--remote="), "punix:"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// DatabaseLocks returns the lock files of the daemon's databases.
func DatabaseLocks(daemon runtime.Daemon) []string {
	paths := databases(daemon)
	for i, path := range paths {
		paths[i] = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".~lock~")
	}
	return paths
}

// databases returns the database files that the daemon serves.
func databases(daemon runtime.Daemon) []string {
	if daemon.Program != "ovsdb-server" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(daemon.Args), func(arg string) bool { return !filepath.IsAbs(arg) })
}
