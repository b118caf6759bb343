// Package workdir is the contract between collectors and replicas: where each
// thing stands on disk, who may change it when, and what the manifest says of
// it. docs/workdir.md describes the same for people.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultPath is where a workdir stands when nobody says otherwise.
const DefaultPath = "/tmp/ovs-offline"

// Dir is a workdir. Only one that was opened with Lock may be changed.
type Dir struct {
	path string
	lock *os.File
}

// ErrInUse is wrapped when another command holds the workdir.
var ErrInUse = errors.New("in use by another ovs-offline command")

// Find returns the workdir at path for reading. It need not be there yet.
func Find(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("workdir %s: %w", path, err)
	}
	// The OVS tools split databases at commas, PATH is split at colons.
	if strings.ContainsAny(abs, "\n\x00,:") {
		return nil, fmt.Errorf("workdir %q: a path with a comma, a colon or a line break can't be used with the OVS tools; choose another with -w", abs)
	}
	if err := checkOwner(abs); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d := &Dir{path: abs}
	return d, d.checkTree()
}

// Lock opens the workdir at path for changing it, makes it (0700) where it is
// not there, and completes an installation that was cut off. Nobody else can
// lock it until Unlock. The error wraps ErrInUse when somebody has.
func Lock(path string) (*Dir, error) {
	d, err := Find(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s can't be made: %w; choose another with -w", d.path, err)
	}
	if err := checkOwner(d.path); err != nil {
		return nil, err
	}
	if d.lock, err = takeLock(d.path); err != nil {
		return nil, err
	}
	if err := d.recoverInstall(); err != nil {
		d.Unlock()
		return nil, err
	}
	return d, nil
}

// Unlock lets others change the workdir again.
func (d *Dir) Unlock() {
	if d.lock != nil {
		// Closing would not do: a child that was forked just now has the file open until it runs its program.
		_ = unix.Flock(int(d.lock.Fd()), unix.LOCK_UN)
		d.lock.Close()
		d.lock = nil
	}
}

// checkOwner refuses a workdir that another user made: in /tmp anybody could
// have prepared one, with links in it, to have our files written elsewhere.
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
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("workdir %s: %w", path, err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("workdir %s belongs to uid %d, not to you (uid %d): it is not used; choose another with -w", path, st.Uid, os.Geteuid())
	}
	if st.Mode&0o022 != 0 {
		remedy := "chmod go-w it, or choose another with -w"
		if st.Mode&unix.S_ISVTX != 0 { // as /tmp: others can't remove what we make, but make it before us
			remedy = "choose a folder of its own with -w"
		}
		return fmt.Errorf("workdir %s can be written to by others (mode %04o): it is not used; %s", path, st.Mode&0o7777, remedy)
	}
	return nil
}

func takeLock(path string) (*os.File, error) {
	name := filepath.Join(path, ".lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("workdir %s can't be written to: %w; choose another with -w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 64)
		n, _ := f.Read(holder)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("workdir %s is %w (pid %s): wait for it, or choose another with -w", path, ErrInUse, strings.TrimSpace(string(holder[:n])))
		}
		return nil, fmt.Errorf("workdir %s can't be locked: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}

// Path is the workdir itself, absolute.
func (d *Dir) Path() string { return d.path }

// Exists tells whether the workdir is there.
func (d *Dir) Exists() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.IsDir()
}

func (d *Dir) join(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// Database is where the collected database of a kind stands. It is never written again.
func (d *Dir) Database(k Kind) string { return d.join("db", string(k), databaseName(k)) }

// RestoreFlows holds what ovs-ofctl is to restore.
func (d *Dir) RestoreFlows() string { return d.join("restore_flows") }

// Recorded holds the live state that steers a replica; names in recorded.go.
func (d *Dir) Recorded(name string) string { return d.join("recorded", name) }

// VarRun holds the sockets of a kind's daemons while a replica runs.
func (d *Dir) VarRun(k Kind) string { return d.join("var-run", string(k)) }

// VarRunRecorded holds the socket of the database as recorded.
func (d *Dir) VarRunRecorded() string { return d.join("var-run", "recorded") }

// Socket is where the ovsdb-server of a kind listens.
func (d *Dir) Socket(k Kind) string { return filepath.Join(d.VarRun(k), "db.sock") }

// RecordedSocket is where the database as recorded is served.
func (d *Dir) RecordedSocket() string { return filepath.Join(d.VarRunRecorded(), "db.sock") }

// Run holds working copies and logs while a replica runs.
func (d *Dir) Run() string { return d.join("run") }

// WorkingCopy is the database that a replica's ovsdb-server writes to.
func (d *Dir) WorkingCopy(k Kind) string { return d.join("run", string(k), databaseName(k)) }

// RecordedCopy is the OVS database as it is served beside the running one.
func (d *Dir) RecordedCopy() string { return d.join("run", "recorded", databaseName(OVS)) }

// Tools is for what a runtime needs to run tools.
func (d *Dir) Tools() string { return d.join("run", "tools") }

// Log is the log file of a daemon, by its role.
func (d *Dir) Log(role string) string { return d.join("run", "log", role+".log") }

// Bin holds activate and the tool wrappers.
func (d *Dir) Bin() string { return d.join("bin") }

// ReplicaFile says what runs, ReportFile how faithful it is.
func (d *Dir) ReplicaFile() string { return d.join("replica.json") }

// ReportFile says how faithful the replica is.
func (d *Dir) ReportFile() string { return d.join("report.json") }

// RemoveIfEmpty removes the workdir if nothing but its lock is in it.
func (d *Dir) RemoveIfEmpty() {
	entries, err := os.ReadDir(d.path)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".lock" {
		return
	}
	os.Remove(d.join(".lock"))
	os.Remove(d.path)
}
