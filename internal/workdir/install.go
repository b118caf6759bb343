package workdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/durable"
	"ovs-offline/internal/interrupt"
)

// A new collection is built beside the old one and put in its place in one
// move: everything is staged below stagingName; writing commitName there is
// the point of no return; whatever is interrupted after it is completed by the
// next command that locks the workdir, whatever is interrupted before leaves
// the earlier collection as it was.
const (
	stagingName = ".incoming"
	commitName  = "commit.json"
)

// commit lists the units (paths in the workdir) that a staging replaces.
type commit struct {
	Units []string `json:"units"`
}

// Staging is a collection in the making. Its methods make paths as the Dir's
// do, below the staging folder.
type Staging struct {
	Dir
	target *Dir
	units  map[string]bool
	whole  []Kind // those of which all is replaced

	mu      sync.Mutex
	written []string // files that have to be on disk before they are installed
}

// units of a kind: the folders that a collection of it owns.
func units(k Kind, databaseOnly bool) []string {
	own := []string{filepath.Join("db", string(k))}
	if k == OVS && !databaseOnly {
		own = append(own, "restore_flows", "recorded")
	}
	return own
}

// isUnit tells what a commit may name: a workdir can come from somebody else.
func isUnit(name string) bool { return slices.Contains(allUnits(), name) }

func allUnits() []string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, units(k, false)...)
	}
	return all
}

// Occupied returns a sentence for each of the kinds that the workdir holds data
// of: what it is, where it came from and since when. With databaseOnly, only a
// database counts.
func (d *Dir) Occupied(databaseOnly bool, kinds ...Kind) ([]string, error) {
	m, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	var there []string
	for _, k := range kinds {
		if c := m.Collection(k); c != nil && (!databaseOnly || c.hasDatabase()) {
			there = append(there, fmt.Sprintf("%s data from %s %s, collected %s", k.Title(), c.Source.Kind, c.Source.Name, c.Collected.Local().Format(time.DateTime)))
			continue
		}
		for _, unit := range units(k, databaseOnly) {
			if entries, err := os.ReadDir(d.join(unit)); err == nil && len(entries) > 0 {
				there = append(there, fmt.Sprintf("%s data put by hand into %s", k.Title(), d.join(unit)))
			}
		}
	}
	return there, nil
}

// Stage begins a collection. Finish it with Install, or Discard it.
func (d *Dir) Stage() (*Staging, error) {
	root := d.join(stagingName)
	if err := os.RemoveAll(root); err != nil {
		return nil, fmt.Errorf("workdir %s: %w", d.path, err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s: %w", d.path, err)
	}
	return &Staging{Dir: Dir{path: root}, target: d, units: map[string]bool{}}, nil
}

// Discard drops what was staged.
func (s *Staging) Discard() { os.RemoveAll(s.path) }

// Replace declares that the staged data replaces all that the workdir has of k;
// databaseOnly leaves the flows and the recorded state of OVS alone.
func (s *Staging) Replace(k Kind, databaseOnly bool) error {
	for _, unit := range units(k, databaseOnly) {
		s.units[unit] = true
		if err := os.MkdirAll(s.join(unit), 0o700); err != nil {
			return fmt.Errorf("workdir %s: %w", s.target.path, err)
		}
	}
	if !databaseOnly {
		s.whole = append(s.whole, k)
	}
	return nil
}

// Spool is a folder for what a collector reads before it knows where it
// belongs. It goes when the staging ends.
func (s *Staging) Spool() (string, error) {
	spool := s.join("spool")
	return spool, os.MkdirAll(spool, 0o700)
}

// Move moves a spooled file to path, which one of Dir's methods on s made, and
// returns the file's entry for the manifest.
func (s *Staging) Move(spooled archive.File, path string) (File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return File{}, err
	}
	if err := os.Rename(spooled.Spooled, path); err != nil {
		return File{}, err
	}
	return s.entry(path, spooled.Size, spooled.SHA256)
}

// Copy writes src to a new file at path, which one of Dir's methods on s made,
// and returns the file's entry for the manifest.
func (s *Staging) Copy(ctx context.Context, src io.Reader, path string) (File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return File{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), interrupt.Reader(ctx, src))
	if err := cmp.Or(err, f.Close()); err != nil {
		return File{}, err
	}
	return s.entry(path, n, hex.EncodeToString(sum.Sum(nil)))
}

// entry describes a staged file, which Install syncs before it commits.
func (s *Staging) entry(path string, size int64, sha256 string) (File, error) {
	rel, err := filepath.Rel(s.path, path)
	if err != nil {
		return File{}, err
	}
	s.mu.Lock()
	s.written = append(s.written, path)
	s.mu.Unlock()
	return File{Path: rel, Size: size, SHA256: sha256}, nil
}

// Install puts the staged collections in place of the ones they replace. A kind
// of which all is replaced, and which is not among them, is gone.
func (s *Staging) Install(collections ...Collection) error {
	m, err := s.target.Manifest()
	if err != nil {
		return err
	}
	given := map[Kind]bool{}
	for _, c := range collections {
		given[c.Kind] = true
		if c.hasDatabase() {
			for i := range m.Collections {
				m.Collections[i].Found(c.Kind)
			}
		}
	}
	for _, c := range collections {
		m.put(c)
	}
	m.Collections = slices.DeleteFunc(m.Collections, func(c Collection) bool { return slices.Contains(s.whole, c.Kind) && !given[c.Kind] })
	if err := WriteJSON(s.manifestPath(), m); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	if err := os.RemoveAll(s.join("spool")); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	var c commit
	for unit := range s.units {
		c.Units = append(c.Units, unit)
	}
	sort.Strings(c.Units)
	// What the commit names must be there whenever the commit is.
	if err := durable.SyncFiles(s.written); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	if err := errors.Join(durable.SyncTree(s.path), durable.Sync(s.target.path)); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	if err := WriteJSON(s.join(commitName), c); err != nil {
		return fmt.Errorf("workdir %s: %w", s.target.path, err)
	}
	return s.target.recoverInstall()
}

// recoverInstall completes a committed installation, and drops one that was
// cut off before it was committed. Doing it twice is as doing it once.
func (d *Dir) recoverInstall() error {
	root := d.join(stagingName)
	var c commit
	err := ReadJSON(filepath.Join(root, commitName), &c)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(root)
	}
	if err != nil {
		return err
	}
	for _, unit := range c.Units {
		if !isUnit(unit) {
			return fmt.Errorf("workdir %s: %s names %q, which is no part of a collection: remove %s", d.path, commitName, unit, root)
		}
	}
	for _, unit := range c.Units {
		if err := d.installUnit(root, unit); err != nil {
			return fmt.Errorf("workdir %s: %s: %w", d.path, unit, err)
		}
	}
	staged := filepath.Join(root, "manifest.json")
	if err := os.Rename(staged, d.manifestPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("workdir %s: %w", d.path, err)
	}
	// The commit goes only when all of its moves can no more be lost.
	if err := d.syncMoves(c.Units); err != nil {
		return fmt.Errorf("workdir %s: %w", d.path, err)
	}
	return os.RemoveAll(root)
}

// syncMoves syncs the folders that units were moved into.
func (d *Dir) syncMoves(units []string) error {
	folders := map[string]bool{d.path: true}
	for _, unit := range units {
		folders[filepath.Dir(d.join(unit))] = true
	}
	for folder := range folders {
		// A folder that is gone was removed by hand after the moves.
		if err := durable.Sync(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (d *Dir) installUnit(root, unit string) error {
	staged := filepath.Join(root, unit)
	if _, err := os.Lstat(staged); errors.Is(err, os.ErrNotExist) {
		return nil // moved already, before the interruption
	}
	if err := d.clearUnit(unit); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.join(unit)), 0o700); err != nil {
		return err
	}
	return os.Rename(staged, d.join(unit))
}

// clearUnit makes room for a new unit. What ovs-offline collected is removed;
// a unit that holds files it did not write is kept under another name.
func (d *Dir) clearUnit(unit string) error {
	foreign, err := d.foreign(unit)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(foreign) == 0 {
		return os.RemoveAll(d.join(unit))
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.old-%d", d.join(unit), n)
		if _, err := os.Lstat(aside); errors.Is(err, os.ErrNotExist) {
			return os.Rename(d.join(unit), aside)
		}
	}
}

// foreign lists the files in a unit that the manifest doesn't know.
func (d *Dir) foreign(unit string) ([]string, error) {
	m, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, c := range m.Collections {
		for _, f := range c.Files {
			ours[f.Path] = true
		}
	}
	var foreign []string
	err = filepath.WalkDir(d.join(unit), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(d.path, path)
		if err == nil && !ours[rel] {
			foreign = append(foreign, rel)
		}
		return err
	})
	return foreign, err
}

// Purge removes what ovs-offline wrote, collected data included, and returns
// the files that it left because it did not write them, and those that it wrote
// but are reached by a link that leads out of the workdir. The workdir itself
// goes when it is empty.
func (d *Dir) Purge() (left []string, err error) {
	m, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names := []string{}
	for _, c := range m.Collections {
		for _, f := range c.Files {
			if !filepath.IsLocal(f.Path) {
				return nil, fmt.Errorf("%s names %q, which is outside the workdir: nothing is removed", d.manifestPath(), f.Path)
			}
			if info, err := root.Lstat(f.Path); err == nil && info.Mode().IsRegular() {
				names = append(names, f.Path)
			}
		}
	}
	for _, name := range append(names, "manifest.json", ".lock") {
		if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return d.removeEmpty()
}

// removeEmpty removes folders that hold nothing, deepest first, and lists the
// files that keep others alive.
func (d *Dir) removeEmpty() (left []string, err error) {
	var folders []string
	top := d.path + "/." // a workdir that is a link is looked into as well
	err = filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			folders = append(folders, path)
		} else {
			left = append(left, strings.TrimPrefix(path, d.path+"/"))
		}
		return nil
	})
	for i := len(folders) - 1; i > 0; i-- {
		os.Remove(folders[i]) // fails where something is left: that is the point
	}
	if len(left) == 0 {
		unix.Rmdir(d.path) // a link is its maker's, and stays
	}
	return left, err
}
