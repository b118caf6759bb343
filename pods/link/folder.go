package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/filelock"
)

// folder is the private folder of the sockets of one command.
type folder struct {
	path string
	lock *filelock.Lock
	used int // the number of replicas with a folder in it
}

// prefix begins the names of these folders.
const prefix = "ovs-offline-link-"

// lockName is the name of the file that a command locks while it uses its folder.
const lockName = "lock"

// folderFor returns the path of the folder for the sockets of a replica.
func (l *Links) folderFor(s *sockets) (string, error) {
	if path := s.VarRuns(); path != "" {
		return path, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", errors.New("the command has ended")
	}
	if l.folder == nil {
		made, err := newFolder()
		if err != nil {
			return "", err
		}
		l.folder = made
	}
	l.folder.used++
	path := filepath.Join(l.folder.path, strconv.Itoa(l.folder.used))
	return path, os.Mkdir(path, 0o700)
}

// newFolder makes a folder, and removes those of commands that were killed.
func newFolder() (*folder, error) {
	parent := os.TempDir()
	if runtimeDir := os.Getenv("XDG_RUNTIME_DIR"); runtimeDir != "" {
		if info, err := os.Stat(runtimeDir); err == nil && info.IsDir() {
			parent = runtimeDir
		}
	}
	removeLeft(parent)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("a folder for the sockets of replicas: %w", err)
	}
	lock, err := filelock.Take(filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &folder{path: path, lock: lock}, nil
}

// removeLeft removes the folders of commands of this user that have ended without doing so.
func removeLeft(parent string) {
	const beingMade = time.Minute // a command locks its folder just after it has made it
	found, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, path := range found {
		var info unix.Stat_t
		if err := unix.Lstat(path, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR || int(info.Uid) != os.Geteuid() {
			continue
		}
		if time.Since(time.Unix(info.Mtim.Unix())) < beingMade {
			continue
		}
		lock, err := filelock.Take(filepath.Join(path, lockName))
		if err != nil {
			continue
		}
		os.RemoveAll(path)
		lock.Release()
	}
}

func (f *folder) remove() error {
	defer f.lock.Release()
	return os.RemoveAll(f.path)
}
