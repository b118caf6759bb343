package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// What was renamed or created in a folder survives a power cut once that folder
// is synced (fsync(2)), on any file system, whether or not it keeps the order of
// renames.

// syncFolder waits until the entries of a folder are on disk. Some network file
// systems answer EINVAL; they need no sync.
func syncFolder(folder string) error {
	err := syncFile(folder)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncTree waits until a folder and everything below it is on disk. It syncs many
// files at once, because a file system then writes its journal once for all of them.
func syncTree(folder string) error {
	var group errgroup.Group
	group.SetLimit(16)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return syncFolder(path)
		}
		group.Go(func() error { return syncFile(path) })
		return nil
	})
	return errors.Join(err, group.Wait())
}
