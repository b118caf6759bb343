package set

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// TestStartsWaitForMemory checks that a start begins once there is memory for it, or no
// other is in progress: then it returns what is lacking.
func TestStartsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.available = func() (int64, bool) { return 100 << 20, true }
		if lacking, err := g.enter(t.Context(), 60<<20); lacking != "" || err != nil {
			t.Fatal(lacking, err)
		}
		entered := make(chan string)
		go func() {
			lacking, err := g.enter(t.Context(), 60<<20)
			if err != nil {
				t.Error(err)
			}
			entered <- lacking
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Error("the second start did not wait")
		default:
		}
		if lacking, err := g.enter(t.Context(), 30<<20); lacking != "" || err != nil {
			t.Error("a small start had to wait", lacking, err)
		}
		g.leave(60 << 20)
		if lacking := <-entered; lacking != "" {
			t.Error(lacking)
		}
		g.leave(60 << 20)
		g.leave(30 << 20)
		lacking, err := g.enter(t.Context(), 300<<20)
		if err != nil || !strings.Contains(lacking, "takes about 300 MiB of memory, and 100 MiB are available") {
			t.Error(lacking, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, 1<<30); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
