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

// Dir is a workdir: the collected data, and the files of a replica of it. Only a Dir that Lock
// returned may be changed.
type Dir struct {
	Data
	Replica
	lock *filelock.Lock
}

func newDir(path string) *Dir { return &Dir{Data: Data{path: path}, Replica: Replica{root: path}} }

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
	wd := newDir(abs)
	return wd, wd.checkTree()
}

// Lock opens the workdir at path for changes. It creates a missing one (mode 0700),
// and completes an installation that was interrupted. The error wraps ErrInUse
// while another process has it locked.
func Lock(path string) (*Dir, error) {
	wd, err := Find(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(wd.path, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s cannot be created: %w; choose another with -w", wd.path, err)
	}
	if err := checkOwner(wd.path); err != nil {
		return nil, err
	}
	if wd.lock, err = takeLock(wd.path); err != nil {
		return nil, err
	}
	if err := journalOf(wd).complete(); err != nil {
		wd.Unlock()
		return nil, err
	}
	return wd, nil
}

// LockToRead opens the workdir at path so that no other command changes it meanwhile: locked, or as it is if this user can't write
// to it, and nothing is left to complete.
func LockToRead(path string) (*Dir, error) {
	locked, err := Lock(path)
	if err == nil {
		return locked, nil
	}
	wd, failed := Find(path)
	if failed != nil || !wd.Exists() || unix.Access(wd.path, unix.W_OK) == nil {
		return nil, err
	}
	if _, left := os.Lstat(wd.join(stagingName)); left == nil {
		return nil, err
	}
	return wd, nil
}

// Unlock releases the lock. It does nothing for nil, and for a workdir that is not locked.
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

// Exists reports whether the workdir exists.
func (d *Dir) Exists() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.IsDir()
}

// Used reports whether the workdir holds what a collection or a start makes, or data
// that a user put there by hand.
func (d *Dir) Used() bool { return isWorkdir(d.path) }

// SwitchDatabase returns the file of the node's OVS database: the collected one, or else the
// one that a start made of its printed tables; "" for none.
func (d *Dir) SwitchDatabase() string {
	for _, path := range []string{d.Database(OVS), d.RecordedCopy()} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// Chassis returns the folder with the workdirs of the chassis whose switches are made up
// from the databases of this one. It need not exist.
func (d *Dir) Chassis() string { return d.join("chassis") }
