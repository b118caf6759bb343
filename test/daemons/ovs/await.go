package ovs

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"
)

// PatienceVariable is the environment variable that says how long Await and all other waiters of tests wait, as
// time.ParseDuration takes it. A test that waits so long has failed: how fast a machine is decides nothing.
const PatienceVariable = "OVS_OFFLINE_PATIENCE"

// pause and longestPause bound the time between two looks at a condition: in between, it is four times as long as the look
// took, so that one that runs a program leaves the machine to what it waits for.
const (
	pause        = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// attempts is how often Resend sends a packet.
const attempts = 4

// Patience returns how long a test waits for something before it fails: three minutes, or what PatienceVariable says.
func Patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(PatienceVariable)); err == nil && d > 0 {
		return d
	}
	return 3 * time.Minute
}

// Timeout returns the option with which a tool of Open vSwitch or OVN ends after Patience.
func Timeout() string { return fmt.Sprintf("--timeout=%.0f", math.Ceil(Patience().Seconds())) }

// Until returns once a condition holds. The error says what was awaited in vain, for Patience or until the context ended.
func Until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, Patience())
	defer cancel()
	for {
		began := time.Now()
		if holds() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case <-time.After(min(max(4*time.Since(began), pause), longestPause)):
		}
	}
}

// Await returns once a condition holds, and fails the test if that takes longer than Patience. The failure has what was
// awaited, and what the functions of state say at its end.
func Await(tb testing.TB, what string, holds func() bool, state ...func() string) {
	tb.Helper()
	// A cleanup waits too, and the test's own context has ended by then.
	err := Until(context.WithoutCancel(tb.Context()), what, holds)
	if err == nil {
		return
	}
	for _, s := range state {
		tb.Log(s())
	}
	tb.Fatal(err)
}

// Receive returns what a channel gives, or the zero value once it is closed, and fails the test if that takes longer
// than Patience.
func Receive[T any](tb testing.TB, what string, from <-chan T) T {
	tb.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience()):
		tb.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// Context returns a context that ends after Patience, or with the test.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience())
	tb.Cleanup(cancel)
	return ctx
}

// Resend sends a packet until arrived reports that it came out, four times at most: a datapath in user space loses packets
// on a busy machine. It reports whether the packet arrived, and logs each repetition. arrived is asked for a
// quarter of a second after each packet.
func Resend(tb testing.TB, what string, send func(), arrived func() bool) bool {
	tb.Helper()
	for attempt := 1; attempt <= attempts; attempt++ {
		if attempt > 1 {
			tb.Logf("%s: nothing came out of try %d; sent again", what, attempt-1)
		}
		send()
		for end := time.Now().Add(250 * time.Millisecond); ; time.Sleep(pause) {
			if arrived() {
				return true
			}
			if time.Now().After(end) {
				break
			}
		}
	}
	return false
}
