package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// prefix begins the names of these folders, and making the names of folders that are not
// locked yet: once a folder has its name, it is locked as long as its command lives.
const (
	prefix = "ovs-offline-link-"
	making = prefix + "new-"
)

// lockName is the name of the file that a command locks while it uses its folder.
const lockName = "lock"

// folderFor returns the path of the folder for the sockets of a replica.
func (l *Links) folderFor(sockets *sockets) (string, error) {
	if path := sockets.VarRuns(); path != "" {
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

// newFolder makes a folder, and removes the folders of commands that were killed.
func newFolder() (*folder, error) {
	parent := foldersParent()
	removeLeft(parent)
	made, err := os.MkdirTemp(parent, making)
	if err != nil {
		return nil, fmt.Errorf("a folder for the sockets of replicas: %w", err)
	}
	lock, err := filelock.Take(filepath.Join(made, lockName))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	path := filepath.Join(parent, prefix+strings.TrimPrefix(filepath.Base(made), making))
	if err := os.Rename(made, path); err != nil {
		lock.Release()
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	return &folder{path: path, lock: lock}, nil
}

// foldersParent returns the folder in which the folders are made.
func foldersParent() string {
	if runtimeDir := os.Getenv("XDG_RUNTIME_DIR"); runtimeDir != "" {
		if info, err := os.Stat(runtimeDir); err == nil && info.IsDir() {
			return runtimeDir
		}
	}
	return os.TempDir()
}

// removeLeft removes the folders of commands of this user that have ended without doing so.
func removeLeft(parent string) {
	const beingMade = time.Minute // far more than a command needs to lock the folder that it has made
	found, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, path := range found {
		var info unix.Stat_t
		if err := unix.Lstat(path, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR || int(info.Uid) != os.Geteuid() {
			continue
		}
		_, err := os.Lstat(filepath.Join(path, lockName))
		unlocked := err != nil || strings.HasPrefix(filepath.Base(path), making)
		if unlocked && time.Since(time.Unix(info.Mtim.Unix())) < beingMade {
			continue
		}
		lock, err := filelock.Take(filepath.Join(path, lockName))
		if err != nil {
			continue
		}
		_ = (&folder{path: path, lock: lock}).remove() // another command tries again
	}
}

// remove removes the folder and releases its lock.
func (f *folder) remove() error {
	defer f.lock.Release()
	return os.RemoveAll(f.path)
}
