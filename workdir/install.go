package workdir

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/internal/archive"
)

// Staging is a collection that is being built. The methods of Data return paths below the
// staging folder.
type Staging struct {
	Data
	target    *Dir
	units     map[string]bool
	whole     []Kind // kinds whose data is replaced completely
	committed bool
}

// Stage begins a collection, which ends with Install or Discard.
func (d *Dir) Stage() (*Staging, error) {
	root := d.join(stagingName)
	if err := os.RemoveAll(root); err != nil {
		return nil, fmt.Errorf("workdir %s: %w", d.path, err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s: %w", d.path, err)
	}
	return &Staging{Data: Data{path: root}, target: d, units: map[string]bool{}}, nil
}

// Discard drops the staged collection, unless it is committed: the next command that locks
// the workdir completes its installation then.
func (s *Staging) Discard() {
	if !s.committed {
		os.RemoveAll(s.path)
	}
}

// Replace declares that the staged data replaces all data of a kind in the
// workdir; databaseOnly leaves the flows and the recorded state of OVS alone.
func (s *Staging) Replace(kind Kind, databaseOnly bool) error {
	for _, unit := range units(kind, databaseOnly) {
		s.units[unit] = true
		if err := os.MkdirAll(s.join(unit), 0o700); err != nil {
			return fmt.Errorf("workdir %s: %w", s.target.path, err)
		}
	}
	if !databaseOnly {
		s.whole = append(s.whole, kind)
	}
	return nil
}

// Spool makes and returns a folder for files that a collector reads before it
// knows where they belong. It is removed when the staging ends.
func (s *Staging) Spool() (string, error) {
	spool := s.join("spool")
	return spool, os.MkdirAll(spool, 0o700)
}

// Move moves a spooled file to path, which a method of s returned, and returns the
// file's entry for the manifest.
func (s *Staging) Move(spooled archive.File, path string) (File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return File{}, err
	}
	if err := os.Rename(spooled.Spooled, path); err != nil {
		return File{}, err
	}
	rel, err := filepath.Rel(s.path, path)
	return File{Path: rel, Size: spooled.Size, SHA256: spooled.SHA256}, err
}

// Copy writes src to a new file at path, which a method of s returned, and returns the
// file's entry for the manifest.
func (s *Staging) Copy(ctx context.Context, src io.Reader, path string) (File, error) {
	spooled, err := archive.Spool(ctx, s.path, src)
	if err != nil {
		return File{}, err
	}
	return s.Move(spooled, path)
}
