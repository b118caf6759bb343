package restore

import (
	"context"
	"time"
)

// until calls done until it returns true or an error, for a second at most:
// ovs-vswitchd applies commands in a thread of its own and does not report when.
// The end of that second is no error; the caller judges by the last result.
func until(ctx context.Context, done func() (bool, error)) error {
	const bound, pause = time.Second, 2 * time.Millisecond
	for deadline := time.Now().Add(bound); ; {
		ok, err := done()
		if ok || err != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
