//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process/landlock"
)

// isolation is how daemons are kept from this host's network.
type isolation int

const (
	unknown    isolation = iota // until the first daemon is started or Isolated is called
	ownNetwork                  // an empty network namespace of their own
	filtered                    // the network namespace of this host, and no sockets for it
	shared                      // the network namespace of this host
)

// Isolated reports whether daemons are kept from this host's network, by a namespace or,
// where that is not possible, by a seccomp filter. It returns the reason why the
// namespace is not possible, and what the filter costs. If no daemon has a namespace yet,
// it makes one, once, and enables its loopback interface.
func (r *Runtime) Isolated(ctx context.Context) (bool, string) {
	how, why := r.findIsolation(ctx)
	return how == ownNetwork || how == filtered, why
}

// HasLoopback reports whether daemons can use a loopback interface of their own.
func (r *Runtime) HasLoopback(ctx context.Context) bool {
	how, _ := r.findIsolation(ctx)
	return how == ownNetwork
}

// findIsolation returns the isolation of daemons, which it finds once.
func (r *Runtime) findIsolation(ctx context.Context) (isolation, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isolation != unknown {
		return r.isolation, r.why
	}
	noNamespace := errors.New("it was asked to run without namespaces")
	if !r.options.NoNamespaces {
		noNamespace = r.options.probe(ctx)
	}
	if ctx.Err() != nil {
		return shared, fmt.Sprintf("trying a namespace: %v", ctx.Err()) // the next call tries again
	}
	if noNamespace == nil {
		r.isolation = ownNetwork
		return r.isolation, r.why
	}
	noFilter := r.options.underFilter(landlock.Rules{AllFiles: true}, func() error { return nil })
	if noFilter == nil {
		r.isolation = filtered
		r.why = fmt.Sprintf("by a seccomp filter, under which sFlow and IPFIX can't open their collectors, so that their sample() is missing from traces; %v", noNamespace)
		return r.isolation, r.why
	}
	r.isolation, r.why = shared, fmt.Sprintf("%v; %v", noNamespace, noFilter)
	r.remarks.Add("daemons run without a network namespace of their own (" + r.why +
		"): they have no privileges, but share this host's network, so tunnels see its routes, and daemons could connect to a controller or collector left in the database")
	return r.isolation, r.why
}

// firstIsolation returns the isolation to start a daemon with. Until it is known, that is
// a namespace: the start of the first daemon shows whether it is possible, which saves the
// time of a probe.
func (r *Runtime) firstIsolation(ctx context.Context) (how isolation, known bool) {
	r.mu.Lock()
	how = r.isolation
	r.mu.Unlock()
	if how == unknown && !r.options.NoNamespaces {
		return ownNetwork, false
	}
	how, _ = r.findIsolation(ctx)
	return how, true
}

// foundNamespaces records that a daemon got a namespace.
func (r *Runtime) foundNamespaces() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isolation = ownNetwork
}

// isExpected reports whether a message of a daemon's log is about a socket that the filter
// refused: such a message does not concern fidelity.
func (r *Runtime) isExpected(message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isolation == filtered && daemon.IsRefusedSocket(message)
}

// Landlock returns the version of Landlock that the kernel has: see landlock.Version.
func Landlock() int { return landlock.Version() }
