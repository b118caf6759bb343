package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Purge removes the files that ovs-offline wrote, collected data included, and
// the workdir itself once it is empty. It returns the files that it did not remove:
// files of other programs, and its own files that a link out of the workdir leads to. In a
// folder that is not a workdir, it removes nothing but what a killed command left.
func (d *Dir) Purge() (left []string, err error) {
	if !d.Used() {
		RemoveUnused(d.path)
		d.RemoveIfEmpty()
		return nil, nil
	}
	manifest, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names := []string{}
	for _, collection := range manifest.Collections {
		for _, file := range collection.Files {
			if !filepath.IsLocal(file.Path) {
				return nil, fmt.Errorf("%s names %q, which is outside the workdir: nothing is removed", d.manifestPath(), file.Path)
			}
			if info, err := root.Lstat(file.Path); err == nil && info.Mode().IsRegular() {
				names = append(names, file.Path)
			}
		}
	}
	for _, name := range append(names, "manifest.json", ".lock") {
		if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	RemoveUnused(d.path)
	return d.removeEmpty()
}

// RemoveUnused removes the workdirs directly below a folder in which a killed command has left
// its lock and what it had not installed, and nothing else. One that is in use stays.
func RemoveUnused(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if !entry.IsDir() || !IsNodeName(entry.Name()) || !isUnused(path) {
			continue
		}
		if below, err := Lock(path); err == nil { // which drops what was not installed
			below.RemoveIfEmpty()
			below.Unlock()
		}
	}
}

// isUnused reports whether a folder has a lock, and beside it at most what was not installed.
func isUnused(path string) bool {
	entries, err := os.ReadDir(path)
	locked := false
	for _, entry := range entries {
		switch entry.Name() {
		case ".lock":
			locked = true
		case stagingName:
		default:
			return false
		}
	}
	return err == nil && locked
}

// removeEmpty removes empty folders, deepest first, and returns the files in the
// remaining folders.
func (d *Dir) removeEmpty() (left []string, err error) {
	var folders []string
	top := d.path + "/." // WalkDir does not follow a link otherwise
	err = filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			folders = append(folders, path)
		} else {
			left = append(left, strings.TrimPrefix(path, d.path+"/"))
		}
		return nil
	})
	for i := len(folders) - 1; i > 0; i-- {
		os.Remove(folders[i]) // fails for a folder that is not empty
	}
	if len(left) == 0 {
		unix.Rmdir(d.path) // fails if the workdir is a link, which the user made
	}
	return left, err
}

// RemoveIfEmpty removes the workdir if it holds nothing but its lock.
func (d *Dir) RemoveIfEmpty() {
	entries, err := os.ReadDir(d.path)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".lock" {
		return
	}
	os.Remove(d.join(".lock"))
	os.Remove(d.path)
}
