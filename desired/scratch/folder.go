package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
)

// folderName is the name of the folder in a workdir in which a Scratch runs.
const folderName = ".scratch"

// Lock returns the folder, locked, of a Scratch that computes the flows of a workdir, or of
// several of which it is the first. Release unlocks it.
func Lock(wd *workdir.Dir) (*workdir.Dir, error) {
	return workdir.Lock(filepath.Join(wd.Path(), folderName))
}

// Release unlocks the folder of a Scratch that has stopped, and removes it.
func Release(dir *workdir.Dir) {
	dir.RemoveIfEmpty()
	dir.Unlock()
}

// EndLeft ends what a killed command has left of a Scratch in a workdir; runtimes returns
// those in which it may run. A Scratch that another command uses goes on running.
func EndLeft(ctx context.Context, wd *workdir.Dir, runtimes func(dir *workdir.Dir) []runtime.Runtime) error {
	if _, err := os.Lstat(filepath.Join(wd.Path(), folderName)); err != nil {
		return nil
	}
	dir, err := Lock(wd)
	if errors.Is(err, workdir.ErrInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	defer Release(dir)
	return End(ctx, dir, runtimes(dir)...)
}
