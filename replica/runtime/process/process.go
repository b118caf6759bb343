//go:build linux

package process

import (
	"cmp"
	"context"
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

	mu        sync.Mutex
	isolation isolation
	why       string // the reason for anything but ownNetwork
	runner    *runner
	remarks   daemon.Remarks
}

var _ runtime.Sharer = (*Runtime)(nil)

// New returns a Runtime. It starts daemons through the running program itself: see
// package namespace.
func New(options Options) *Runtime {
	options.StartTimeout = cmp.Or(options.StartTimeout, daemon.StartTimeout)
	options.StopTimeout = cmp.Or(options.StopTimeout, daemon.StopTimeout)
	return &Runtime{options: options}
}

// At returns a Runtime with the same programs for daemons in other folders.
func (r *Runtime) At(folders []string) runtime.Runtime {
	options := r.options
	options.Folders = folders
	return New(options)
}

// Name returns Name.
func (r *Runtime) Name() string { return Name }

// Root returns the folder with the root file system that daemons and tools run in; "" for
// this host's.
func (r *Runtime) Root() string { return r.options.Root }

// Remarks returns lines about missing isolation and about errors that daemons
// logged while they started.
func (r *Runtime) Remarks() []string { return r.remarks.Lines() }

// State returns the state of the daemon: it runs if a process holds its pid file.
func (r *Runtime) State(_ context.Context, d runtime.Daemon) (runtime.State, error) {
	holder, err := findHolder(d)
	if err != nil {
		return runtime.State{}, err
	}
	if holder.evidence != "" {
		return runtime.State{Running: true, PID: holder.pid}, nil
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
