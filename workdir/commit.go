package workdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/outfile"
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
func units(kind Kind, databaseOnly bool) []string {
	if kind == Host {
		return []string{string(Host)}
	}
	own := []string{filepath.Join("db", string(kind))}
	if kind == OVS && !databaseOnly {
		own = append(own, "restore_flows", "recorded")
	}
	return own
}

func allUnits() []string {
	var all []string
	for _, kind := range AllKinds() {
		all = append(all, units(kind, false)...)
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
	return journalOf(s.target).complete()
}

// commitPrepared commits what is prepared in a staging folder.
func commitPrepared(folder string) error {
	if err := os.Rename(filepath.Join(folder, preparedName), filepath.Join(folder, commitName)); err != nil {
		return err
	}
	return outfile.SyncFolder(folder)
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
	manifest, err := s.target.Manifest()
	if err != nil {
		return err
	}
	for unit := range s.units {
		if folder := filepath.Dir(s.target.join(unit)); !isFolderOrMissing(folder) {
			return fmt.Errorf("%s is a file, where a folder has to be: remove it", folder)
		}
	}
	given := map[Kind]bool{}
	for _, collection := range collections {
		given[collection.Kind] = true
		if collection.hasDatabase() {
			for i := range manifest.Collections {
				manifest.Collections[i].DropLost(collection.Kind)
			}
		}
	}
	for _, collection := range collections {
		manifest.put(collection)
	}
	manifest.Collections = slices.DeleteFunc(manifest.Collections, func(collection Collection) bool {
		return slices.Contains(s.whole, collection.Kind) && !given[collection.Kind]
	})
	if err := WriteUnsynced(s.manifestPath(), manifest); err != nil { // syncTree syncs it
		return err
	}
	if err := os.RemoveAll(s.join("spool")); err != nil {
		return err
	}
	// The files that the commit installs have to be on disk before the commit is.
	if err := errors.Join(syncTree(s.path), outfile.SyncFolder(s.target.path)); err != nil {
		return err
	}
	return WriteJSON(s.join(preparedName), commit{Units: slices.Sorted(maps.Keys(s.units)), Together: together})
}

func isFolderOrMissing(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}
