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

// Data is the collected data of a workdir, or of a Staging.
type Data struct {
	path  string
	files *Files // that the readers of a case share; nil for none
}

// Share makes readers of the workdir's files share them.
func (d *Data) Share(files *Files) { d.files = files }

// Path returns the absolute path of the workdir.
func (d *Data) Path() string { return d.path }

func (d *Data) join(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// Relative returns a path in the workdir as the manifest and reports name it.
func (d *Data) Relative(path string) string { return strings.TrimPrefix(path, d.path+"/") }

// Database returns the path of a kind's collected database, which is never changed.
func (d *Data) Database(kind Kind) string { return d.join("db", string(kind), databaseName(kind)) }

// PrintedDatabase returns the path of the text with the printed tables of an OVN database, from
// which a start makes the database where no file of it was collected.
func (d *Data) PrintedDatabase(kind Kind) string {
	return d.join("db", string(kind), printedTables, "tables.txt")
}

// DatabaseTail returns the path of the end of an OVN database's file, beside its printed tables.
func (d *Data) DatabaseTail(kind Kind) string {
	return d.join("db", string(kind), printedTables, "tail.db")
}

// Absence says why the workdir has no OVN database of a kind.
func (d *Data) Absence(kind Kind) string {
	if _, err := os.Stat(d.PrintedDatabase(kind)); err == nil {
		return "only printed tables of the " + kind.Title() + " database were collected, and start makes it from them"
	}
	return "the " + kind.Title() + " database was not collected"
}

// printedTables is the folder of the printed tables of a database, below the folder of the database.
const printedTables = "printed"

// RestoreFlows returns the folder of the dumps that ovs-ofctl restores.
func (d *Data) RestoreFlows() string { return d.join("restore_flows") }

// Recorded returns the path of a recorded output; recorded.go has the names.
func (d *Data) Recorded(name string) string { return d.join("recorded", name) }

// IsData reports whether a path in a workdir may belong to a collected file: local,
// clean, below a folder that a collection owns, and without control characters, which
// no collector writes.
func IsData(path string) bool {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || strings.ContainsFunc(path, func(char rune) bool { return char < ' ' || char == 0x7f }) {
		return false
	}
	for _, unit := range allUnits() {
		if strings.HasPrefix(path, unit+"/") {
			return true
		}
	}
	return false
}

// DataFiles returns the regular files of the collected data, including files that
// a user added, as paths in the workdir. Special files and links are in other.
func (d *Data) DataFiles() (files, other []string, err error) {
	for _, unit := range allUnits() {
		err := filepath.WalkDir(d.join(unit), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			rel := d.Relative(path)
			if entry.Type().IsRegular() && IsData(rel) {
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
func (d *Data) Join(path string) string { return d.join(path) }

// Occupied returns a sentence for each of the kinds that the workdir holds data of,
// with the source and the time. With databaseOnly, only a database counts as data.
// Synthesised data does not count: it can be made again.
func (d *Data) Occupied(databaseOnly bool, kinds ...Kind) ([]string, error) {
	manifest, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	var occupied []string
	for _, kind := range kinds {
		collection := manifest.Collection(kind)
		if collection != nil && collection.MadeUp() {
			continue
		}
		if collection != nil && (!databaseOnly || kind == Host || collection.hasDatabase()) {
			occupied = append(occupied, fmt.Sprintf("%s data from %s %s, collected %s", kind.Title(), collection.Source.Kind, collection.Source.Name, collection.Collected.Local().Format(time.DateTime)))
			continue
		}
		for _, unit := range units(kind, databaseOnly) {
			if entries, err := os.ReadDir(d.join(unit)); err == nil && len(entries) > 0 {
				occupied = append(occupied, fmt.Sprintf("%s data added by hand in %s", kind.Title(), d.join(unit)))
			}
		}
	}
	return occupied, nil
}
