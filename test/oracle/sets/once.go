package sets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// IsShared reports whether the set is one that the tests of a run share, and not a test's own.
func (s *Set) IsShared() bool { return filepath.Dir(s.Dir) == os.Getenv(RecordedVariable) }

// Once makes a folder that the tests of a run share: the first to ask makes it, and all others wait until it is
// complete. What an unfinished attempt left, say of a test that was killed, is removed before.
func Once(folder string, make func() error) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(folder+".made", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	if info, err := lock.Stat(); err != nil || info.Size() > 0 {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	_, err = lock.WriteString("complete\n")
	return err
}
