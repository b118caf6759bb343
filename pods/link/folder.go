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

// prefix begins the names of these folders, and making those of folders that are not locked
// yet: once a folder has its name, it is locked as long as its command lives.
const (
	prefix = "ovs-offline-link-"
	making = prefix + "new-"
)

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

// keeperSocket is the name of the socket in the folder of a keeper.
const keeperSocket = "keeper"

// keeperFolder returns the path of the folder of the keeper for a start of replicas.
func keeperFolder(set string) (string, error) {
	if !isFileName(prefix+set) || set == "" {
		return "", fmt.Errorf("%q is not the label of a start", set)
	}
	return filepath.Join(foldersParent(), prefix+set), nil
}

// newKeeperFolder makes the folder of a keeper. The error is a *filelock.HeldError if a
// keeper uses it.
func newKeeperFolder(set string) (*folder, error) {
	path, err := keeperFolder(set)
	if err != nil {
		return nil, err
	}
	for {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		// A keeper that ends removes the folder, perhaps just now.
		if made, err := lockKeeperFolder(path); !errors.Is(err, os.ErrNotExist) {
			return made, err
		}
	}
}

// lockKeeperFolder locks a folder for a keeper, and removes the socket of one that was
// killed.
func lockKeeperFolder(path string) (*folder, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := isPrivate(root); err != nil {
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(path, lockName))
	if err != nil {
		return nil, err
	}
	if err := root.Remove(keeperSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Release()
		return nil, err
	}
	return &folder{path: path, lock: lock}, nil
}

// isPrivate returns an error unless a folder is this user's, and no other may use it: it
// has a name that others can know, in a folder in which they may make one.
func isPrivate(folder *os.Root) error {
	dir, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	var info unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &info); err != nil {
		return err
	}
	if int(info.Uid) != os.Geteuid() || info.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not private", folder.Name())
	}
	return nil
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

// remove removes the folder and releases its lock. The folder loses its name first, all at
// once, so that nothing of a folder of the same name that a keeper makes then is removed.
func (f *folder) remove() error {
	defer f.lock.Release()
	nameless, err := os.MkdirTemp(filepath.Dir(f.path), making)
	if err != nil {
		return err
	}
	err = os.Rename(f.path, filepath.Join(nameless, filepath.Base(f.path)))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	removed := os.RemoveAll(nameless)
	for errors.Is(removed, unix.ENOTEMPTY) { // a keeper that starts just now has made its lock in it
		removed = os.RemoveAll(nameless)
	}
	return errors.Join(err, removed)
}
