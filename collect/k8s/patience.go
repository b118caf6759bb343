package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/kube"
)

const (
	// tries is how many tries must fail, one after the other, before it is given up.
	tries = 3
	// defaultPatience is how long tries must have failed before it is given up: a
	// kubelet, a container runtime, an API server or a container may be restarted.
	defaultPatience = 20 * time.Second
)

// patience decides how long a node is tried again after failures.
type patience struct {
	limit   time.Duration                          // 0 for defaultPatience
	waiting func(pause time.Duration, cause error) // called before each pause; may be nil

	mu          sync.Mutex
	since       time.Time // the first of the failures that followed each other
	failures    int
	interrupted bool // any try has failed
}

// judged is an error that is known to be final or not: whether another try would give
// it again.
type judged struct {
	error
	final bool
}

func (j judged) Unwrap() error { return j.error }

// isFinal reports whether another try would fail in the same way.
func isFinal(err error) bool {
	var judged judged
	if errors.As(err, &judged) {
		return judged.final
	}
	return errors.Is(err, errNoTool) || errors.Is(err, errLocal) || errors.Is(err, archive.ErrLimit) || fault.Of(err) == fault.Usage
}

// isRefused reports whether the user lacks a permission. A server that was just
// restarted may say so, too.
func isRefused(err error) bool {
	return apierrors.IsUnauthorized(err) || kube.IsForbidden(err)
}

// persist calls try until it succeeds, until its error is final, or until it has failed
// for too long. again is false in the first call.
func (p *patience) persist(ctx context.Context, try func(again bool) error) error {
	for n := 1; ; n++ {
		err := try(n > 1)
		if err == nil {
			p.succeeded()
			return nil
		}
		if ctx.Err() != nil || isFinal(err) || isRefused(err) && !p.mayRestart() {
			return err
		}
		pause, left := p.failed()
		if !left && n == 1 {
			return err
		}
		if !left {
			return fmt.Errorf("%w (given up after %d tries)", err, n)
		}
		if p.waiting != nil {
			p.waiting(pause, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// failed counts a failure. It returns the pause before the next try; left is false if
// there is to be none.
func (p *patience) failed() (pause time.Duration, left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures == 0 {
		p.since = time.Now()
	}
	p.failures++
	p.interrupted = true
	return time.Duration(min(p.failures, 5)) * p.total() / 20, p.hasLeft()
}

// succeeded ends a row of failures.
func (p *patience) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = 0
}

// mayRestart reports whether a part may just be restarting: a try has failed before,
// and another one is left.
func (p *patience) mayRestart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.interrupted && p.hasLeft()
}

func (p *patience) hasLeft() bool {
	return p.failures < tries || time.Since(p.since) < p.total()
}

func (p *patience) total() time.Duration { return cmp.Or(p.limit, defaultPatience) }
