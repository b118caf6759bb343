package filelock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestHolderMayRemoveTheFile checks that a lock has one holder at a time, also if each
// holder removes the file.
func TestHolderMayRemoveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				lock, err := Take(path)
				if err != nil {
					continue // another holds it
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				taken.Add(1)
				time.Sleep(10 * time.Microsecond) // so that a second holder is seen
				holders.Add(-1)
				_ = os.Remove(path)
				lock.Release()
			}
		})
	}
	wg.Wait()
	if taken.Load() == 0 {
		t.Error("nothing was locked")
	}
}

// TestLockOfAnEndedHolderIsAwaited holds a lock in the name of a process that has ended, as
// a child of it does that has not executed its program yet.
func TestLockOfAnEndedHolderIsAwaited(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), ".lock")
	child, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendln(nil, ended.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, child.Release)
	lock, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	var held *HeldError
	if _, err := Take(path); !errors.As(err, &held) {
		t.Errorf("a lock that this process holds was taken: %v", err)
	}
}
