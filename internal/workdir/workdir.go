// Package workdir defines the working directory, by which collectors pass data to
// replicas: the path of each file, the lock, the manifest, and how a collection
// replaces an earlier one. docs/workdir.md describes it for users.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/filelock"
)

// DefaultPath is the workdir if the user gives none.
const DefaultPath = "/tmp/ovs-offline"

// Dir is a workdir. Only a Dir that Lock returned may be changed.
type Dir struct {
	path    string
	lock    *filelock.Lock
	sockets Sockets // of a replica on another machine; nil for one on this machine
}

// ErrInUse is wrapped when another command has locked the workdir.
var ErrInUse = errors.New("in use by another ovs-offline command")

// Find returns the workdir at path for reading. It need not exist yet.
func Find(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("workdir %s: %w", path, err)
	}
	// The OVS tools split lists of databases at commas; shells split PATH at colons.
	if strings.ContainsAny(abs, "\n\x00,:") {
		return nil, fmt.Errorf("workdir %q: a path with a comma, a colon or a line break cannot be used with the OVS tools; choose another with -w", abs)
	}
	if err := checkOwner(abs); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d := &Dir{path: abs}
	return d, d.checkTree()
}

// Lock opens the workdir at path for changes. It creates a missing one (mode 0700),
// and completes an installation that was interrupted. The error wraps ErrInUse
// while another process has it locked.
func Lock(path string) (*Dir, error) {
	d, err := Find(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s cannot be created: %w; choose another with -w", d.path, err)
	}
	if err := checkOwner(d.path); err != nil {
		return nil, err
	}
	if d.lock, err = takeLock(d.path); err != nil {
		return nil, err
	}
	if err := d.completeInstall(); err != nil {
		d.Unlock()
		return nil, err
	}
	return d, nil
}

// Unlock releases the lock. It does nothing for nil.
func (d *Dir) Unlock() {
	if d != nil && d.lock != nil {
		d.lock.Release()
		d.lock = nil
	}
}

// checkOwner refuses a workdir that another user owns or can write to: in /tmp any user
// could prepare a workdir with links that redirect our files.
func checkOwner(path string) error {
	var link unix.Stat_t
	if err := unix.Lstat(path, &link); err == nil && int(link.Uid) != os.Geteuid() && link.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("workdir %s is a link that uid %d made, not you (uid %d): it is not used; choose another with -w", path, link.Uid, os.Geteuid())
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("workdir %s is not a directory; choose another with -w", path)
	}
	st := info.Sys().(*syscall.Stat_t)
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("workdir %s belongs to uid %d, not to you (uid %d): it is not used; choose another with -w", path, st.Uid, os.Geteuid())
	}
	if st.Mode&0o022 != 0 {
		remedy := "chmod go-w it, or choose another with -w"
		if st.Mode&unix.S_ISVTX != 0 { // as /tmp: other users can create our files before we do
			remedy = "choose a folder of its own with -w"
		}
		return fmt.Errorf("workdir %s can be written to by others (mode %04o): it is not used; %s", path, st.Mode&0o7777, remedy)
	}
	return nil
}

func takeLock(path string) (*filelock.Lock, error) {
	lock, err := filelock.Take(filepath.Join(path, ".lock"))
	if held, isHeld := errors.AsType[*filelock.HeldError](err); isHeld {
		return nil, fmt.Errorf("workdir %s is %w (pid %s): wait for it, or choose another with -w", path, ErrInUse, held.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("workdir %s cannot be written to: %w; choose another with -w", path, err)
	}
	return lock, nil
}

// Path returns the absolute path of the workdir.
func (d *Dir) Path() string { return d.path }

// Exists reports whether the workdir exists.
func (d *Dir) Exists() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.IsDir()
}

// Used reports whether the workdir holds what a collection or a start makes, or data
// that a user put there by hand.
func (d *Dir) Used() bool { return isWorkdir(d.path) }

func (d *Dir) join(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// Relative returns a path in the workdir as the manifest and reports name it.
func (d *Dir) Relative(path string) string { return strings.TrimPrefix(path, d.path+"/") }

// Database returns the path of a kind's collected database, which is never changed.
func (d *Dir) Database(k Kind) string { return d.join("db", string(k), databaseName(k)) }

// RestoreFlows returns the folder of the dumps that ovs-ofctl restores.
func (d *Dir) RestoreFlows() string { return d.join("restore_flows") }

// Recorded returns the path of a recorded output; recorded.go has the names.
func (d *Dir) Recorded(name string) string { return d.join("recorded", name) }

// Chassis returns the folder with the workdirs of the chassis whose switches are made up
// from the databases of this one. It need not exist.
func (d *Dir) Chassis() string { return d.join("chassis") }

// VarRun returns the folder of the sockets of a kind's daemons while a replica runs.
func (d *Dir) VarRun(k Kind) string { return filepath.Join(d.VarRuns(), string(k)) }

// VarRunRecorded returns the folder of the socket of the database as recorded.
func (d *Dir) VarRunRecorded() string { return filepath.Join(d.VarRuns(), "recorded") }

// Socket returns the socket of a kind's ovsdb-server.
func (d *Dir) Socket(k Kind) string { return filepath.Join(d.VarRun(k), "db.sock") }

// RecordedSocket returns the socket of the server of the database as recorded.
func (d *Dir) RecordedSocket() string { return filepath.Join(d.VarRunRecorded(), "db.sock") }

// RuntimeFolders returns the folders with all files of a replica's daemons. Where
// these don't share the host's files, they see only these folders of it.
func (d *Dir) RuntimeFolders() []string { return []string{d.Run(), d.VarRuns()} }

// VarRuns returns the folder that holds the folders of the daemons' sockets.
func (d *Dir) VarRuns() string {
	if d.sockets != nil {
		return d.sockets.VarRuns()
	}
	return d.join("var-run")
}

// Run returns the folder of working copies and logs while a replica runs.
func (d *Dir) Run() string { return d.join("run") }

// WorkingCopy returns the database that a replica's ovsdb-server writes to.
func (d *Dir) WorkingCopy(k Kind) string { return d.join("run", string(k), databaseName(k)) }

// RecordedCopy returns the served copy of the OVS database as recorded.
func (d *Dir) RecordedCopy() string { return d.join("run", "recorded", databaseName(OVS)) }

// Tools returns the folder of the files by which a runtime runs tools.
func (d *Dir) Tools() string { return d.join("run", "tools") }

// Tracer returns the folder of the files of the ovn-trace that start runs.
func (d *Dir) Tracer() string { return d.join("run", "ovn-trace") }

// Log returns the log file of a daemon, by its role.
func (d *Dir) Log(role string) string { return d.join("run", "log", role+".log") }

// Bin returns the folder of the activate script and the tool wrappers.
func (d *Dir) Bin() string { return d.join("bin") }

// ReplicaFile returns the file that describes the running replica.
func (d *Dir) ReplicaFile() string { return d.join("replica.json") }

// ReportFile returns the file that describes how faithful the replica is.
func (d *Dir) ReportFile() string { return d.join("report.json") }
