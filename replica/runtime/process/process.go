//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Supported returns why local processes are not available; on Linux they are.
func Supported() error { return nil }

// Runtime runs daemons as local processes. It finds them by the locks on their pid
// files, so all Runtimes see the same daemons.
type Runtime struct {
	options Options

	mu      sync.Mutex
	probed  bool
	refused string // why there are no namespaces; "" if there are
	runner  *runner
	remarks daemon.Remarks
}

var _ runtime.Sharer = (*Runtime)(nil)

// New returns a Runtime. It starts daemons through the running program itself: see
// package namespace.
func New(o Options) *Runtime {
	o.StartTimeout = cmp.Or(o.StartTimeout, daemon.StartTimeout)
	o.StopTimeout = cmp.Or(o.StopTimeout, daemon.StopTimeout)
	return &Runtime{options: o}
}

// At returns a Runtime with the same programs for daemons in other folders.
func (r *Runtime) At(folders []string) runtime.Runtime {
	o := r.options
	o.Folders = folders
	return New(o)
}

// Name returns Name.
func (r *Runtime) Name() string { return Name }

// Root returns the folder with the root file system that daemons and tools run in; "" for
// this host's.
func (r *Runtime) Root() string { return r.options.Root }

// Isolated reports whether daemons get an empty network namespace, and the reason
// if not. If no daemon has one yet, it makes one, once, and enables its loopback
// interface.
func (r *Runtime) Isolated(ctx context.Context) (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.probed {
		err := errors.New("it was asked to run without namespaces")
		if !r.options.NoNamespaces {
			err = probe(ctx)
		}
		if ctx.Err() != nil {
			return false, fmt.Sprintf("trying a namespace: %v", ctx.Err()) // the next call tries again
		}
		r.probed = true
		if err != nil {
			r.refused = err.Error()
			r.remarks.Add("daemons run without a network namespace of their own (" + r.refused +
				"): they have no privileges, but share this host's network, so tunnels see its routes, and daemons could connect to a controller or collector left in the database")
		}
	}
	return r.refused == "", r.refused
}

// mayIsolate reports whether daemons get a namespace, or whether that is not known
// yet: the first daemon's start then shows it, which saves the time of a probe.
func (r *Runtime) mayIsolate(ctx context.Context) (may, known bool) {
	r.mu.Lock()
	known = r.probed
	r.mu.Unlock()
	if !known && !r.options.NoNamespaces {
		return true, false
	}
	may, _ = r.Isolated(ctx) // the reason is among the remarks
	return may, true
}

// foundIsolated records that a daemon got a namespace.
func (r *Runtime) foundIsolated() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probed = true
}

// Remarks returns lines about missing namespaces and about errors that daemons
// logged while they started.
func (r *Runtime) Remarks() []string { return r.remarks.Lines() }

// State returns the state of d: it runs if a process holds its pid file.
func (r *Runtime) State(_ context.Context, d runtime.Daemon) (runtime.State, error) {
	h, err := findHolder(d)
	if err != nil {
		return runtime.State{}, err
	}
	if h.evidence != "" {
		return runtime.State{Running: true, PID: h.pid}, nil
	}
	problem := daemon.FatalLine(d)
	if _, err := os.Lstat(daemon.PIDFile(d)); err == nil && problem == "" {
		problem = "it was killed or crashed: it left " + daemon.PIDFile(d)
	}
	return runtime.State{Problem: problem}, nil
}

// End ends the process that runs tools in a root file system.
func (r *Runtime) End(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropRunner()
	return nil
}
