package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/outfile"
)

// journal is what an installation leaves in a workdir until it is complete: the staged files,
// and the commit.
type journal struct {
	*Data
	staging string // the folder of the staged files
}

func journalOf(d *Dir) *journal { return &journal{Data: &d.Data, staging: d.join(stagingName)} }

// Recover completes or drops what a killed command has left of an installation in a folder.
// It leaves a folder as it is that another command has locked or that can't be written to:
// commands that only read work there all the same.
func Recover(path string) {
	if _, err := os.Lstat(filepath.Join(path, stagingName)); err != nil {
		return
	}
	if wd, err := Lock(path); err == nil {
		wd.Unlock()
	}
}

// commitTogether makes the prepared commit of the workdir valid if the folder that holds the
// workdir has committed it.
func (j *journal) commitTogether() error {
	var prepared, together commit
	err := errors.Join(ReadJSON(filepath.Join(j.staging, preparedName), &prepared), ReadJSON(filepath.Join(filepath.Dir(j.path), stagingName, commitName), &together))
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing is prepared, or the folder has committed nothing
	}
	if err != nil {
		return err
	}
	if prepared.Together != together.Together || !slices.Contains(together.Workdirs, filepath.Base(j.path)) {
		return nil
	}
	return commitPrepared(j.staging)
}

// completeBelow completes the installations of the workdirs in the folder that a commit names.
// A workdir that another command has locked was completed when it was locked.
func (j *journal) completeBelow(committed commit) error {
	for _, name := range committed.Workdirs {
		if !IsNodeName(name) {
			return fmt.Errorf("workdir %s: %s names %q, which is not a workdir in it: remove %s", j.path, commitName, name, j.staging)
		}
		below, err := Lock(j.join(name))
		if err != nil && !errors.Is(err, ErrInUse) {
			return err
		}
		below.Unlock()
	}
	return nil
}

// complete completes a committed installation, and drops one that was
// interrupted before it was committed. It may run again after an interruption.
func (j *journal) complete() error {
	if err := j.commitTogether(); err != nil {
		return fmt.Errorf("workdir %s: %w", j.path, err)
	}
	var committed commit
	err := ReadJSON(filepath.Join(j.staging, commitName), &committed)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(j.staging)
	}
	if err != nil {
		return err
	}
	// A commit in a workdir from another person may name anything.
	for _, unit := range committed.Units {
		if !slices.Contains(allUnits(), unit) {
			return fmt.Errorf("workdir %s: %s names %q, which is not part of a collection: remove %s", j.path, commitName, unit, j.staging)
		}
	}
	for _, unit := range committed.Units {
		if err := j.installUnit(unit); err != nil {
			return fmt.Errorf("workdir %s: %s: %w", j.path, unit, err)
		}
	}
	if err := j.completeBelow(committed); err != nil {
		return err
	}
	staged := filepath.Join(j.staging, "manifest.json")
	if err := os.Rename(staged, j.manifestPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("workdir %s: %w", j.path, err)
	}
	// The commit is removed only when its renames are on disk. A user may have removed
	// a folder after the renames.
	for _, folder := range []string{j.path, j.join("db")} {
		if err := outfile.SyncFolder(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("workdir %s: %w", j.path, err)
		}
	}
	return os.RemoveAll(j.staging)
}

func (j *journal) installUnit(unit string) error {
	staged := filepath.Join(j.staging, unit)
	if _, err := os.Lstat(staged); errors.Is(err, os.ErrNotExist) {
		return nil // the unit was moved before the interruption
	}
	if err := j.clearUnit(unit); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(j.join(unit)), 0o700); err != nil {
		return err
	}
	return os.Rename(staged, j.join(unit))
}

// clearUnit removes a unit that ovs-offline collected. A unit with other files is
// renamed instead, to UNIT.old-1 or the next free number.
func (j *journal) clearUnit(unit string) error {
	other, err := j.hasOtherFiles(unit)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !other {
		return os.RemoveAll(j.join(unit))
	}
	for n := 1; ; n++ {
		backup := fmt.Sprintf("%s.old-%d", j.join(unit), n)
		if _, err := os.Lstat(backup); errors.Is(err, os.ErrNotExist) {
			return os.Rename(j.join(unit), backup)
		}
	}
}

// hasOtherFiles reports whether a unit holds files that the manifest does not list.
func (j *journal) hasOtherFiles(unit string) (bool, error) {
	manifest, err := j.Manifest()
	if err != nil {
		return false, err
	}
	collected := map[string]bool{}
	for _, collection := range manifest.Collections {
		for _, file := range collection.Files {
			collected[j.join(file.Path)] = true
		}
	}
	other := false
	err = filepath.WalkDir(j.join(unit), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		other = other || !collected[path]
		return nil
	})
	return other, err
}
