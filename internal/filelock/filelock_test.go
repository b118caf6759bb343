package filelock

import (
	"os"
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
