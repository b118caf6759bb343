// Package choose chooses the runtime for the replica of a workdir from the runtimes
// that are available on this machine.
package choose

import (
	"context"
	"fmt"
	"os"
	"slices"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
)

// The names on the command line of the runtimes other than container engines.
const (
	Auto    = runtime.Auto
	Process = process.Name
)

// Names lists the runtimes that the command line takes.
func Names() []string { return slices.Concat([]string{Auto}, engine.Names(), []string{Process}) }

// Runtimes holds the runtimes in which the replica of one workdir can run. It connects
// to each engine at most once.
type Runtimes struct {
	workdir   *workdir.Dir
	version   string
	connected map[string]connection
}

type connection struct {
	engine engine.Engine
	err    error
}

// Finder returns a function that returns the runtimes of a workdir; version is the version of ovs-offline.
func Finder(version string) runtime.Finder {
	return func(wd *workdir.Dir) runtime.Runtimes { return For(wd, version) }
}

// For returns the runtimes of a workdir; version is the version of ovs-offline.
func For(wd *workdir.Dir, version string) *Runtimes {
	return &Runtimes{workdir: wd, version: version, connected: map[string]connection{}}
}

func (r *Runtimes) connect(ctx context.Context, name string) (engine.Engine, error) {
	connection, tried := r.connected[name]
	if !tried {
		connection.engine, connection.err = engine.Connect(ctx, name)
		if ctx.Err() == nil {
			r.connected[name] = connection
		}
	}
	return connection.engine, connection.err
}

// All returns every runtime in which a replica of the workdir may run: the
// engines that answer, and then local processes. The engines come first, because only
// an engine can stop the containers that it runs.
func (r *Runtimes) All(ctx context.Context) []runtime.Runtime {
	var all []runtime.Runtime
	for _, name := range append(engine.Names(), Process) {
		if rt, err := r.Named(ctx, name); err == nil {
			all = append(all, rt)
		}
	}
	return all
}

// Named returns the runtime of a name, for a replica that runs. A container runtime has
// no image then, and can't start a replica; local processes have the root file system that
// the replica's daemons run in.
func (r *Runtimes) Named(ctx context.Context, name string) (runtime.Runtime, error) {
	if name == Process {
		return r.Local(process.RunningRoot(r.workdir.VarRuns())), nil
	}
	engine, err := r.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	return container.New(engine, "", r.version, r.workdir), nil
}

// Local returns the runtime of local processes in the root file system of an image, which
// is in the folder root; "" means this host's.
func (r *Runtimes) Local(root string) runtime.Runtime {
	return process.New(process.Options{Root: root, Folders: r.workdir.RuntimeFolders()})
}

// Executor returns the executor that runs programs beside the replica in a runtime.
// Containers need their engine only for programs on a terminal.
func (r *Runtimes) Executor(ctx context.Context, name string, terminal bool) (runtime.Executor, error) {
	if name != Process && !terminal {
		return container.NewTools(r.workdir.Tools()), nil
	}
	return r.Named(ctx, name)
}

// ExecPrefix returns the beginning of a command line that runs a tool beside the
// replica; nil for local processes with this machine's own tools.
func (r *Runtimes) ExecPrefix(rt runtime.Runtime) ([]string, error) {
	if rt.Name() == Process && rt.Root() == "" {
		return nil, nil
	}
	return ExecPrefix(r.workdir)
}

// ExecPrefix returns the beginning of a command line that runs a tool beside the replica of
// a workdir, wherever that runs.
func ExecPrefix(wd *workdir.Dir) ([]string, error) {
	self, err := Self(wd)
	return append(self, "exec", "--"), err
}

// Self returns the beginning of a command line of ovs-offline on a workdir.
func Self(wd *workdir.Dir) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{self, "--workdir=" + wd.Path()}, nil
}
