package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
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

// syncFiles waits until files are on disk. It syncs many at once, because a file
// system then writes its journal once for all of them.
func syncFiles(paths []string) error {
	const parallel = 16
	errs := make([]error, len(paths))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, path := range paths {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = syncFile(path)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncTree syncs a folder and all folders below it, but not their files.
func syncTree(folder string) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return syncFolder(path)
	})
}
