package workdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A new collection is built in the folder stagingName and replaces the old one in
// one step. Writing the file commitName there commits it: an installation that is
// interrupted later is completed by the next command that locks the workdir, and
// one that is interrupted earlier leaves the old collection as it was.
//
// Collections of several workdirs in a folder are installed together: the commit of each is
// prepared as preparedName, and the file commitName in the folder, which names the workdirs,
// commits them all.
const (
	stagingName  = ".incoming"
	commitName   = "commit.json"
	preparedName = "prepared.json"
)

// commit lists the units that a staging replaces, or the workdirs in the folder whose
// prepared collections with the same identifier are installed.
type commit struct {
	Units    []string `json:"units,omitempty"`
	Workdirs []string `json:"workdirs,omitempty"`
	Together string   `json:"together,omitempty"`
}

// units returns the folders that a collection of a kind owns, as paths in the workdir.
func units(k Kind, databaseOnly bool) []string {
	own := []string{filepath.Join("db", string(k))}
	if k == OVS && !databaseOnly {
		own = append(own, "restore_flows", "recorded")
	}
	return own
}

func allUnits() []string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, units(k, false)...)
	}
	return all
}

// Install replaces collections of the workdir by the staged ones. A kind whose
// data is replaced completely and that is not among collections is removed.
func (s *Staging) Install(collections ...Collection) error {
	if err := s.prepare(collections, ""); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	return s.complete()
}

// complete commits what is prepared, and installs it.
func (s *Staging) complete() error {
	if err := commitPrepared(s.path); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	s.committed = true
	return s.target.completeInstall()
}

// commitPrepared commits what is prepared in a staging folder.
func commitPrepared(folder string) error {
	if err := os.Rename(filepath.Join(folder, preparedName), filepath.Join(folder, commitName)); err != nil {
		return err
	}
	return syncFolder(folder)
}

// Staged is a staging with its collections.
type Staged struct {
	*Staging
	Collections []Collection
}

// InstallAll installs the collections of several workdirs in the folder of a staging: all of
// them or, after an error or a kill, none.
func (s *Staging) InstallAll(all []Staged) error {
	together := commit{Together: rand.Text()}
	for _, one := range all {
		if err := one.prepare(one.Collections, together.Together); err != nil {
			return fmt.Errorf("workdir %s: %w", one.target.path, err)
		}
		together.Workdirs = append(together.Workdirs, filepath.Base(one.target.path))
	}
	if err := WriteJSON(s.join(commitName), together); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	s.committed = true
	for _, one := range all {
		one.committed = true // by the folder, also if this command goes no further
	}
	for _, one := range all {
		if err := one.complete(); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.path)
}

// prepare writes the manifest and the commit, under a name that does not commit it yet.
// together is the identifier of an installation of several workdirs.
func (s *Staging) prepare(collections []Collection, together string) error {
	m, err := s.target.Manifest()
	if err != nil {
		return err
	}
	for unit := range s.units {
		if folder := filepath.Dir(s.target.join(unit)); !isFolderOrMissing(folder) {
			return fmt.Errorf("%s is a file, where a folder has to be: remove it", folder)
		}
	}
	given := map[Kind]bool{}
	for _, c := range collections {
		given[c.Kind] = true
		if c.hasDatabase() {
			for i := range m.Collections {
				m.Collections[i].DropLost(c.Kind)
			}
		}
	}
	for _, c := range collections {
		m.put(c)
	}
	m.Collections = slices.DeleteFunc(m.Collections, func(c Collection) bool { return slices.Contains(s.whole, c.Kind) && !given[c.Kind] })
	if err := WriteJSON(s.manifestPath(), m); err != nil {
		return err
	}
	if err := os.RemoveAll(s.join("spool")); err != nil {
		return err
	}
	// The files that the commit installs have to be on disk before the commit is.
	if err := errors.Join(syncTree(s.path), syncFolder(s.target.path)); err != nil {
		return err
	}
	return WriteJSON(s.join(preparedName), commit{Units: slices.Sorted(maps.Keys(s.units)), Together: together})
}

func isFolderOrMissing(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}

// commitTogether makes the prepared commit of the workdir valid if the folder that holds the
// workdir has committed it.
func (d *Dir) commitTogether() error {
	root := d.join(stagingName)
	var prepared, together commit
	err := errors.Join(ReadJSON(filepath.Join(root, preparedName), &prepared), ReadJSON(filepath.Join(filepath.Dir(d.path), stagingName, commitName), &together))
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing is prepared, or the folder has committed nothing
	}
	if err != nil {
		return err
	}
	if prepared.Together != together.Together || !slices.Contains(together.Workdirs, filepath.Base(d.path)) {
		return nil
	}
	return commitPrepared(root)
}

// completeBelow completes the installations of the workdirs in the folder that a commit names.
// A workdir that another command has locked was completed when it was locked.
func (d *Dir) completeBelow(c commit) error {
	for _, name := range c.Workdirs {
		if !IsNodeName(name) {
			return fmt.Errorf("workdir %s: %s names %q, which is no workdir in it: remove %s", d.path, commitName, name, d.join(stagingName))
		}
		below, err := Lock(d.join(name))
		if err != nil && !errors.Is(err, ErrInUse) {
			return err
		}
		below.Unlock()
	}
	return nil
}

// Recover completes or drops what a killed command has left of an installation in a folder.
// It leaves a folder as it is that another command has locked or that can't be written to:
// commands that only read work there all the same.
func Recover(path string) {
	if _, err := os.Lstat(filepath.Join(path, stagingName)); err != nil {
		return
	}
	if d, err := Lock(path); err == nil {
		d.Unlock()
	}
}

// completeInstall completes a committed installation, and drops one that was
// interrupted before it was committed. It may run again after an interruption.
func (d *Dir) completeInstall() error {
	if err := d.commitTogether(); err != nil {
		return fmt.Errorf("workdir %s: %w", d.path, err)
	}
	root := d.join(stagingName)
	var c commit
	err := ReadJSON(filepath.Join(root, commitName), &c)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(root)
	}
	if err != nil {
		return err
	}
	// A commit in a workdir from another person may name anything.
	for _, unit := range c.Units {
		if !slices.Contains(allUnits(), unit) {
			return fmt.Errorf("workdir %s: %s names %q, which is no part of a collection: remove %s", d.path, commitName, unit, root)
		}
	}
	for _, unit := range c.Units {
		if err := d.installUnit(root, unit); err != nil {
			return fmt.Errorf("workdir %s: %s: %w", d.path, unit, err)
		}
	}
	if err := d.completeBelow(c); err != nil {
		return err
	}
	staged := filepath.Join(root, "manifest.json")
	if err := os.Rename(staged, d.manifestPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("workdir %s: %w", d.path, err)
	}
	// The commit is removed only when its renames are on disk. A user may have removed
	// a folder after the renames.
	for _, folder := range []string{d.path, d.join("db")} {
		if err := syncFolder(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("workdir %s: %w", d.path, err)
		}
	}
	return os.RemoveAll(root)
}

func (d *Dir) installUnit(root, unit string) error {
	staged := filepath.Join(root, unit)
	if _, err := os.Lstat(staged); errors.Is(err, os.ErrNotExist) {
		return nil // the unit was moved before the interruption
	}
	if err := d.clearUnit(unit); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.join(unit)), 0o700); err != nil {
		return err
	}
	return os.Rename(staged, d.join(unit))
}

// clearUnit removes a unit that ovs-offline collected. A unit with other files is
// renamed instead, to UNIT.old-1 or the next free number.
func (d *Dir) clearUnit(unit string) error {
	other, err := d.hasOtherFiles(unit)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !other {
		return os.RemoveAll(d.join(unit))
	}
	for n := 1; ; n++ {
		backup := fmt.Sprintf("%s.old-%d", d.join(unit), n)
		if _, err := os.Lstat(backup); errors.Is(err, os.ErrNotExist) {
			return os.Rename(d.join(unit), backup)
		}
	}
}

// hasOtherFiles reports whether a unit holds files that the manifest does not list.
func (d *Dir) hasOtherFiles(unit string) (bool, error) {
	m, err := d.Manifest()
	if err != nil {
		return false, err
	}
	collected := map[string]bool{}
	for _, c := range m.Collections {
		for _, f := range c.Files {
			collected[d.join(f.Path)] = true
		}
	}
	other := false
	err = filepath.WalkDir(d.join(unit), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		other = other || !collected[path]
		return nil
	})
	return other, err
}
