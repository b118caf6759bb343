package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

const (
	// folderName is the name of the folder in a workdir in which a Scratch runs.
	folderName = ".scratch"
	// replicasName is the name of the folder in that one for the workdirs of replicas that
	// run for the duration of a command.
	replicasName = "replicas"
)

// Lock returns the folder, locked, of a Scratch that computes the flows of a workdir, or of
// several if it is the first of them. Release unlocks it.
func Lock(wd *workdir.Dir) (*workdir.Dir, error) {
	return workdir.Lock(filepath.Join(wd.Path(), folderName))
}

// Release unlocks the folder of a Scratch that has stopped, and removes it.
func Release(dir *workdir.Dir) {
	dir.RemoveIfEmpty()
	dir.Unlock()
}

// Replicas returns the folder for the workdirs of replicas that run for the duration of a
// command. Clean ends them.
func Replicas(dir *workdir.Dir) string { return filepath.Join(dir.Path(), replicasName) }

// Clean ends the daemons and the replicas in the folder of a Scratch, and removes all that
// is in it. runtimes returns the runtimes in which the daemons of a folder may run.
func Clean(ctx context.Context, dir *workdir.Dir, runtimes runtime.Finder) error {
	failed := End(ctx, dir, runtimes(dir).All(ctx)...)
	below, err := workdir.Below(Replicas(dir))
	if err != nil {
		return errors.Join(failed, err)
	}
	for _, path := range below {
		wd, err := workdir.Lock(path)
		if err == nil {
			err = replica.Stop(ctx, wd, runtimes(wd).All(ctx)...)
			wd.Unlock()
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	return os.RemoveAll(Replicas(dir))
}

// EndLeft ends what a killed command has left of a Scratch in a workdir. One that another
// command uses goes on running.
func EndLeft(ctx context.Context, wd *workdir.Dir, runtimes runtime.Finder) error {
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
	return Clean(ctx, dir, runtimes)
}
