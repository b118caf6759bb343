// Package temporary makes temporary files and folders. A killed command can't remove its own.
// So each is locked while its command runs, and the next command that makes one of the same
// name removes all others of that name that no process has locked.
package temporary

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ovs-offline/internal/filelock"
)

// lockName is the name of the file in a temporary folder that is locked while the folder is
// used.
const lockName = ".lock"

// Folder makes a folder for temporary files, whose name has the program and a purpose. remove removes
// it with what is in it.
func Folder(purpose string) (path string, remove func() error, err error) {
	parent, prefix := os.TempDir(), "ovs-offline-"+purpose+"-"
	removeLeft(parent, prefix, isLeftFolder)
	if path, err = os.MkdirTemp(parent, prefix+"*"); err != nil {
		return "", nil, err
	}
	lock, err := filelock.Take(filepath.Join(path, lockName))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(path))
	}
	return path, func() error { defer lock.Release(); return os.RemoveAll(path) }, nil
}

// File makes a temporary file in a folder, whose name begins with a prefix. release ends its
// use, and leaves the file where it is.
func File(folder, prefix string) (file *os.File, release func(), err error) {
	removeLeft(folder, prefix, isLeft)
	if file, err = os.CreateTemp(folder, prefix+"*"); err != nil {
		return nil, nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, func() { file.Close() }, nil
}

// removeLeft removes what killed commands of this user have left in a folder. What can't be
// removed stays.
func removeLeft(folder, prefix string, left func(path string) bool) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) || !isOwn(entry) {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		if left(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// isOwn reports whether the user owns a file or folder.
func isOwn(entry os.DirEntry) bool {
	info, err := entry.Info()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && (info.IsDir() || info.Mode().IsRegular())
}

// isLeftFolder reports whether the lock file of a folder is left, or other files without it: a
// command that was killed while it removed them had removed its lock file first.
func isLeftFolder(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 { // or a command makes its lock file now
		return false
	}
	lock := filepath.Join(path, lockName)
	if _, err := os.Lstat(lock); errors.Is(err, os.ErrNotExist) {
		return true
	}
	return isLeft(lock)
}

// isLeft reports whether a lock file exists, and no process locks it.
func isLeft(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
