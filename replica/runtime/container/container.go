// Package container runs a replica's daemons in containers, each daemon in a
// container of its own.
//
// One more container runs the tools, and the others join its PID namespace: tools
// then find the daemons by their pid files, as on a host. Sockets and files are in
// the working directory.
package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/workdir"
)

// The labels by which the containers of a replica are found without its files.
const (
	LabelWorkdir = "ovs-offline.workdir"
	LabelRole    = "ovs-offline.role"
	LabelVersion = "ovs-offline.version"
)

// roleTools is the role of the container that runs tools.
const roleTools = "tools"

// Runtime runs the daemons of one replica. It finds them through the engine, so
// several Runtimes see the same daemons.
type Runtime struct {
	engine  engine.Engine
	image   string // empty for a Runtime that starts nothing
	version string // of ovs-offline
	workdir *workdir.Dir
	tools   *Tools

	mu      sync.Mutex // protects the fields below and the start of the tools' container
	toolsID string
	remarks daemon.Remarks
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime for the replica of a workdir. version is the version of
// ovs-offline; without an image the Runtime starts nothing.
func New(engine engine.Engine, image, version string, wd *workdir.Dir) *Runtime {
	return &Runtime{engine: engine, image: image, version: version, workdir: wd, tools: &Tools{folder: wd.Tools(), image: image}}
}

// Name returns the name of the engine.
func (r *Runtime) Name() string { return r.engine.Name() }

// Root returns "": an engine keeps its images itself.
func (r *Runtime) Root() string { return "" }

// Isolated returns true: a container has no network but its own loopback interface.
func (r *Runtime) Isolated(context.Context) (bool, string) { return true, "" }

// HasLoopback returns true.
func (r *Runtime) HasLoopback(context.Context) bool { return true }

// Remarks returns the errors that daemons logged while they started.
func (r *Runtime) Remarks() []string { return r.remarks.Lines() }

// State returns the state of the container of d.
func (r *Runtime) State(ctx context.Context, daemon runtime.Daemon) (runtime.State, error) {
	container, err := r.find(ctx, daemon.Role)
	if errors.Is(err, engine.ErrNoContainer) {
		return runtime.State{}, nil
	}
	if err != nil {
		return runtime.State{}, err
	}
	if container.Running {
		return runtime.State{Running: true, PID: container.PID, Container: container.Name}, nil
	}
	return runtime.State{Problem: fmt.Sprintf("its container %s ended with exit code %d%s", container.Name, container.Exit, r.lastOutput(ctx, container.ID, daemon))}, nil
}

// find returns the replica's container of a role. It ignores a container of that
// name that this package did not make.
func (r *Runtime) find(ctx context.Context, role string) (engine.Container, error) {
	container, err := r.engine.Inspect(ctx, r.name(role))
	if err != nil {
		return engine.Container{}, err
	}
	if !r.isOwn(container) {
		return engine.Container{}, fmt.Errorf("%s was not made by ovs-offline for this working directory: %w", container.Name, engine.ErrNoContainer)
	}
	return container, nil
}

func (r *Runtime) isOwn(container engine.Container) bool {
	return container.Labels[LabelWorkdir] == r.workdir.Path()
}

var unsafeInName = lazyregexp.New(`[^A-Za-z0-9_.-]`)

// name returns the name of a container. It contains the name of the working directory
// and a hash of its path, because several directories can have the same name.
func (r *Runtime) name(role string) string {
	safe := unsafeInName.ReplaceAllString(filepath.Base(r.workdir.Path()), "-")
	const maxName = 40
	sum := fnv.New32a()
	sum.Write([]byte(r.workdir.Path()))
	return fmt.Sprintf("ovs-offline-%s-%08x-%s", safe[:min(maxName, len(safe))], sum.Sum32(), role)
}

// spec returns the container of a role, without a command.
func (r *Runtime) spec(role string) engine.Spec {
	return engine.Spec{
		Name: r.name(role), Image: r.image,
		Labels:  map[string]string{LabelWorkdir: r.workdir.Path(), LabelRole: role, LabelVersion: r.version},
		Folders: r.workdir.RuntimeFolders(),
	}
}

// removeTimeout is the time in which an engine must remove a container that failed.
const removeTimeout = 20 * time.Second

// launch makes and starts a container and waits until it is ready; on error, it removes
// it.
func (r *Runtime) launch(ctx context.Context, spec engine.Spec, d runtime.Daemon, ready func() bool) (id string, err error) {
	ctx, cancel := daemon.StartContext(ctx, daemon.StartTimeout, d)
	defer cancel()
	if err := r.clearName(ctx, spec.Name, d.Role); err != nil {
		return "", err
	}
	if id, err = r.engine.Create(ctx, spec); err != nil {
		return "", fmt.Errorf("starting %s: %w", d.Role, r.explain(ctx, err))
	}
	if err = r.engine.Start(ctx, id); err == nil {
		err = r.await(ctx, id, d, ready)
	}
	if err != nil {
		err = fmt.Errorf("starting %s: %w", d.Role, err)
		// An engine that hung when it started the container can hang here too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		return "", errors.Join(err, r.engine.Remove(ctx, id))
	}
	return id, nil
}

// clearName removes the container that a killed start left under a name.
func (r *Runtime) clearName(ctx context.Context, name, role string) error {
	container, err := r.engine.Inspect(ctx, name)
	switch {
	case errors.Is(err, engine.ErrNoContainer):
		return nil
	case err != nil:
		return fmt.Errorf("starting %s: %w", role, err)
	case !r.isOwn(container):
		return fmt.Errorf("starting %s: the %s container %s was not made by ovs-offline for this working directory, and is left alone: rename it, remove it, or use another working directory (-w)", role, r.Name(), name)
	case container.Running:
		return fmt.Errorf("%s: %w in container %s", role, runtime.ErrRunning, name)
	}
	return r.engine.Remove(ctx, container.ID)
}

// explain adds to an error how to get an image, if the image is missing.
func (r *Runtime) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		if _, missing := r.engine.InspectImage(ctx, r.image); errors.Is(missing, engine.ErrNoImage) {
			return fmt.Errorf("%w %s in %s: %s", runtime.ErrNoImage, r.image, r.Name(), howToGetImage)
		}
	}
	return err
}

// await waits until a started container is ready. If the container has ended, the error
// contains its last output. An engine's own wait checks four times a second; ready is
// cheap enough to be called much more often.
func (r *Runtime) await(ctx context.Context, id string, d runtime.Daemon, ready func() bool) error {
	const pause, inspectInterval = 2 * time.Millisecond, 100 * time.Millisecond
	for inspected := time.Now(); !ready(); {
		if time.Since(inspected) > inspectInterval {
			container, err := r.engine.Inspect(ctx, id)
			if err == nil && !container.Running {
				return fmt.Errorf("it ended with exit code %d%s", container.Exit, r.lastOutput(ctx, id, d))
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
			inspected = time.Now()
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("%w%s", daemon.StartEnded(ctx), r.lastOutput(context.WithoutCancel(ctx), id, d))
		case <-time.After(pause):
		}
	}
	return nil
}

// lastOutput returns the last output of a container and the fatal error in its
// daemon's log, as an appendix to an error.
func (r *Runtime) lastOutput(ctx context.Context, id string, d runtime.Daemon) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	output, _ := r.engine.Log(ctx, id, 30) // as much as the engine still has
	if d.Log != "" {
		stderr, _ := os.ReadFile(stderrOf(d)) // missing if the daemon was not started
		output += string(stderr)
	}
	return cmp.Or(daemon.Reason(output), daemon.Reason(daemon.FatalLine(d)))
}
