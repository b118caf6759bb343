package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// IsData reports whether a path in a workdir may belong to a collected file: local,
// clean, below a folder that a collection owns, and without control characters, which
// no collector writes.
func IsData(path string) bool {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	for _, unit := range allUnits() {
		if strings.HasPrefix(path, unit+"/") {
			return true
		}
	}
	return false
}

// DataFiles returns the regular files of the collected data, including those that
// a user added, as paths in the workdir. Special files and links are in other.
func (d *Dir) DataFiles() (files, other []string, err error) {
	for _, unit := range allUnits() {
		err := filepath.WalkDir(d.join(unit), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			rel := d.Relative(path)
			if e.Type().IsRegular() && IsData(rel) {
				files = append(files, rel)
			} else {
				other = append(other, rel)
			}
			return nil
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("workdir %s: %w", d.path, err)
		}
	}
	return files, other, nil
}

// Join returns the absolute path for a path in the workdir for which IsData is true.
func (d *Dir) Join(path string) string { return d.join(path) }

// Occupied returns a sentence for each of the kinds of which the workdir holds data,
// with the source and the time. With databaseOnly, only a database counts as data.
// Synthesised data does not count: it can be made again.
func (d *Dir) Occupied(databaseOnly bool, kinds ...Kind) ([]string, error) {
	m, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	var occupied []string
	for _, k := range kinds {
		c := m.Collection(k)
		if c != nil && c.Synthesised != nil {
			continue
		}
		if c != nil && (!databaseOnly || c.hasDatabase()) {
			occupied = append(occupied, fmt.Sprintf("%s data from %s %s, collected %s", k.Title(), c.Source.Kind, c.Source.Name, c.Collected.Local().Format(time.DateTime)))
			continue
		}
		for _, unit := range units(k, databaseOnly) {
			if entries, err := os.ReadDir(d.join(unit)); err == nil && len(entries) > 0 {
				occupied = append(occupied, fmt.Sprintf("%s data added by hand in %s", k.Title(), d.join(unit)))
			}
		}
	}
	return occupied, nil
}

// checkTree refuses a workdir with types of files that ovs-offline never makes
// there. A workdir from another person could hold links that lead out of it, and
// named pipes and devices whose reading never ends.
func (d *Dir) checkTree() error {
	folders := []string{"db", "restore_flows", "recorded", "bin", "run", "var-run", stagingName}
	files := []string{"manifest.json", "replica.json", "report.json"}
	for _, name := range append(folders, files...) {
		err := filepath.WalkDir(d.join(name), func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return nil // the step that reads the file returns the error
			}
			rel := d.Relative(path)
			if what := d.unexpected(rel, e.Type()); what != "" {
				remedy := "choose another with -w"
				if d.Used() { // unlike / or another folder of the system, whose links have to stay
					remedy = "remove it, or " + remedy
				}
				return fmt.Errorf("workdir %s: %s is %s, which ovs-offline never makes there: the workdir is not used; %s", d.path, path, what, remedy)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unexpected names a file's type, "" for one that ovs-offline makes at that path.
func (d *Dir) unexpected(path string, kind fs.FileMode) string {
	running := strings.HasPrefix(path, "run/") || strings.HasPrefix(path, "var-run/")
	switch {
	case kind.IsDir(), kind.IsRegular(), running && kind == fs.ModeSocket, kind == fs.ModeNamedPipe && strings.HasPrefix(d.join(path), d.Tools()+"/"):
		return ""
	case kind == fs.ModeSymlink:
		return "a link"
	case kind == fs.ModeNamedPipe:
		return "a named pipe"
	case kind == fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
