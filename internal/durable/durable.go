// Package durable makes files and folders survive a power cut: what was renamed
// or created in a folder is safe once that folder is synced (fsync(2)), on any
// file system, whether or not it keeps the order of renames.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Sync waits until the entries of a folder are on disk. File systems that can't
// tell (EINVAL, as some network ones say) are taken to need nothing.
func Sync(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// SyncFiles waits until files are on disk, many at once: a file system writes
// its journal once for all that ask meanwhile.
func SyncFiles(paths []string) error {
	const most = 16
	errs := make([]error, len(paths))
	turns := make(chan struct{}, most)
	var wg sync.WaitGroup
	for i, path := range paths {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
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

// SyncTree does so for a folder and all in it. Files are left to who wrote them.
func SyncTree(folder string) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return Sync(path)
	})
}
