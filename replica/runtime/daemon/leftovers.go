package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/replica/runtime"
)

// RemoveLeftovers removes what a daemon that no longer runs left behind. An
// ovsdb-server and an ovs-vswitchd share a directory: each removes only what
// it makes itself, and only what is of the kind it makes.
func RemoveLeftovers(d runtime.Daemon) error {
	var failed []error
	remove := func(path string, kind os.FileMode) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != kind {
			return // not there, or not what a daemon makes: leave it
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, fmt.Errorf("leftover of %s: %w", d.Role, err))
		}
	}
	for _, name := range inRunDir(d, ownSocket) {
		remove(filepath.Join(d.RunDir, name), os.ModeSocket)
	}
	for _, path := range Listens(d) {
		remove(path, os.ModeSocket)
	}
	for _, path := range append(DatabaseLocks(d), PIDFile(d), PIDFile(d)+".tmp") {
		if isFree(path) {
			remove(path, 0)
		}
	}
	return errors.Join(failed...)
}

// ControlSockets are the sockets at which d, or one that ran before, takes
// ovs-appctl's commands.
func ControlSockets(d runtime.Daemon) []string {
	var paths []string
	for _, name := range inRunDir(d, controlSocket) {
		paths = append(paths, filepath.Join(d.RunDir, name))
	}
	return paths
}

// inRunDir names the entries of d's directory that are of a kind.
func inRunDir(d runtime.Daemon, kind func(d runtime.Daemon, name string) bool) []string {
	entries, err := os.ReadDir(d.RunDir)
	if err != nil {
		return nil // the daemon will say what is wrong with its directory
	}
	var names []string
	for _, entry := range entries {
		if kind(d, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

func controlSocket(d runtime.Daemon, name string) bool {
	return strings.HasPrefix(name, d.Program+".") && strings.HasSuffix(name, ".ctl")
}

func ownSocket(d runtime.Daemon, name string) bool {
	if d.Program == "ovs-vswitchd" && (strings.HasSuffix(name, ".mgmt") || strings.HasSuffix(name, ".snoop")) {
		return true
	}
	return controlSocket(d, name)
}

// Listens are the sockets that d's arguments tell it to make.
func Listens(d runtime.Daemon) []string {
	var paths []string
	for _, arg := range d.Args {
		if path, ok := strings.CutPrefix(strings.TrimPrefix(arg, "--remote="), "punix:"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// DatabaseLocks are the lock files that stand beside d's databases.
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
