package workdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// Staging is a collection in the making. Its methods return paths as those of Dir
// do, below the staging folder.
type Staging struct {
	Dir
	target *Dir
	units  map[string]bool
	whole  []Kind // kinds whose data is replaced completely

	mu      sync.Mutex
	written []string // files that have to be on disk before they are installed
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
	return &Staging{Dir: Dir{path: root}, target: d, units: map[string]bool{}}, nil
}

// Discard drops the staged collection.
func (s *Staging) Discard() { os.RemoveAll(s.path) }

// Replace declares that the staged data replaces all data of a kind in the
// workdir; databaseOnly leaves the flows and the recorded state of OVS alone.
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

// Spool makes and returns a folder for files that a collector reads before it
// knows where they belong. It is removed when the staging ends.
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
