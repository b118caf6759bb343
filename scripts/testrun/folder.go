package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ovs-offline/internal/filelock"
)

// folder holds what the tests of one run make. Its name is short, because of the sockets in it, and it is locked while the
// run lasts.
type folder struct {
	path string
	lock *filelock.Lock
}

// prefix begins the names of the folders; what follows has digits only.
const prefix = "oot"

// begin ends what earlier runs left that did not end by themselves, and makes the folder of this one.
func begin() (*folder, error) {
	former, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"[0-9]*"))
	if err != nil {
		return nil, err
	}
	for _, path := range former {
		if !isOwn(path) {
			continue
		}
		lock, err := filelock.Take(filepath.Join(path, "lock"))
		if err != nil {
			continue // that run lasts
		}
		if err := (&folder{path, lock}).end(); err != nil {
			return nil, err
		}
	}
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(path, "lock"))
	return &folder{path, lock}, err
}

// isOwn reports whether a folder belongs to this user, and is none that another user's link leads to.
func isOwn(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid()
}

// end ends the processes that name the folder, in their arguments, their environment or as their working directory, and
// removes it.
func (f *folder) end() error {
	defer f.lock.Release()
	for found := true; found; { // until none is left: one may have started another
		found = false
		for _, pid := range f.processes() {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("removing what tests left: %w", err)
	}
	return nil
}

// processes returns the process IDs of the processes that name the folder, but for this one. Those of other users say nothing
// of themselves but their arguments.
func (f *folder) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		at, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if strings.Contains(string(arguments)+string(environment)+at+"/", f.path+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}
