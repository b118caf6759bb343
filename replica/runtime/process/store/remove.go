package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Remove removes the image that Find returns for a name. It does not check whether a
// replica runs in it.
func (s *Store) Remove(ctx context.Context, name string) error {
	if _, err := s.Find(name); err != nil {
		return err // without a lock, and so without making a store
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	i, err := s.Find(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := filepath.Dir(i.Root)
	removing := filepath.Join(s.path, removingPrefix+filepath.Base(folder))
	if err := os.Rename(folder, removing); err != nil {
		return fmt.Errorf("removing image %s: %w", i.Name, err)
	}
	if err := os.RemoveAll(removing); err != nil {
		return fmt.Errorf("removing image %s: %w", i.Name, err)
	}
	return nil
}
