package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// IsData tells whether a path in a workdir, with slashes, is one of a collected
// file: local, clean, below a folder that a collection owns, and without
// characters that no collector writes.
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

// DataFiles lists the regular files of the collected data, those that were put
// there by hand among them, as paths in the workdir. Anything else (a link, a
// socket) is not data, and in other.
func (d *Dir) DataFiles() (files, other []string, err error) {
	for _, k := range Kinds() {
		for _, unit := range units(k, false) {
			err := filepath.WalkDir(d.join(unit), func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				rel, err := filepath.Rel(d.path, path)
				if err != nil {
					return err
				}
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
	}
	return files, other, nil
}

// Join is where a path of DataFiles stands; it must be one for which IsData holds.
func (d *Dir) Join(path string) string { return d.join(path) }
