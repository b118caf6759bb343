// Package container runs a replica's daemons in containers, one a daemon, with
// whatever engine it is given: what the engines have in common is here.
//
// The containers of a replica share one set of process ids, that of a container
// more, which runs tools: a tool then finds the daemons by their pid files, as
// it does on a host. Sockets and files are those of the working directory.
package container

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// The labels by which the containers of a replica are found, whatever became of
// the files that tell of them.
const (
	LabelWorkdir = "ovs-offline.workdir"
	LabelRole    = "ovs-offline.role"
	LabelVersion = "ovs-offline.version"
)

// roleTools is the role of the container that runs tools.
const roleTools = "tools"

// Options of New.
type Options struct {
	Engine  Engine
	Image   string   // may be empty where nothing is to be started
	Workdir string   // absolute; the replica is known by it
	Folders []string // those of its folders that daemons and tools use
	Scratch string   // a folder inside one of them, for this package alone
	Version string   // of ovs-offline

	StartTimeout time.Duration // bound of one daemon's start (see daemon.StartTimeout); 0 means 30 s
	StopTimeout  time.Duration // how long a daemon may take to end by itself; 0 means 5 s
}

// Runtime runs the daemons of one replica. What runs is known from the engine
// alone, so any number of Runtimes, one after the other or at once, see the same.
type Runtime struct {
	options Options
	tools   *Tools

	mu      sync.Mutex // guards what follows, and the making of the tools' container
	toolsID string
	remarks daemon.Remarks
}

var _ runtime.Runtime = (*Runtime)(nil)

// New makes a Runtime.
func New(o Options) *Runtime {
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	return &Runtime{options: o, tools: &Tools{folder: o.Scratch, image: o.Image}}
}

// Name is the spelling the command line uses.
func (r *Runtime) Name() string { return r.options.Engine.Name() }

// Isolated is always true: a container has no network but its own loopback.
func (r *Runtime) Isolated(context.Context) (bool, string) { return true, "" }

// Remarks are what daemons logged as an error while they started.
func (r *Runtime) Remarks() []string { return r.remarks.Lines() }

// State tells whether the container of d runs.
func (r *Runtime) State(ctx context.Context, d runtime.Daemon) (runtime.State, error) {
	c, err := r.find(ctx, d.Role)
	if errors.Is(err, ErrNoContainer) {
		return runtime.State{}, nil
	}
	if err != nil {
		return runtime.State{}, err
	}
	if c.Running {
		return runtime.State{Running: true, PID: c.PID, Container: c.Name}, nil
	}
	return runtime.State{Problem: fmt.Sprintf("its container %s ended with exit code %d%s", c.Name, c.Exit, r.lastWords(ctx, c.ID, d))}, nil
}

// find returns the replica's container of a role. One of that name that is not
// ours counts as none, and is never touched.
func (r *Runtime) find(ctx context.Context, role string) (Container, error) {
	c, err := r.options.Engine.Inspect(ctx, r.name(role))
	if err != nil {
		return Container{}, err
	}
	if !r.owns(c) {
		return Container{}, fmt.Errorf("%s is somebody else's: %w", c.Name, ErrNoContainer)
	}
	return c, nil
}

func (r *Runtime) owns(c Container) bool { return c.Labels[LabelWorkdir] == r.options.Workdir }

// name is a container's name: the working directory's own, for people, and a
// hash of its path, for there may be several of that name.
func (r *Runtime) name(role string) string {
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '-'
	}, filepath.Base(r.options.Workdir))
	const longest = 40
	sum := fnv.New32a()
	sum.Write([]byte(r.options.Workdir))
	return fmt.Sprintf("ovs-offline-%s-%08x-%s", safe[:min(longest, len(safe))], sum.Sum32(), role)
}

// spec is the container of a role, ready but for its command.
func (r *Runtime) spec(role string) Spec {
	return Spec{
		Name: r.name(role), Image: r.options.Image,
		Labels: map[string]string{LabelWorkdir: r.options.Workdir, LabelRole: role, LabelVersion: r.options.Version},
		UID:    os.Geteuid(), GID: os.Getegid(), Folders: r.options.Folders,
	}
}

// removal is how long an engine may take to remove a container that failed.
const removal = 20 * time.Second

// launch makes and starts a container and waits until it is ready. On any error
// nothing of it is left.
func (r *Runtime) launch(ctx context.Context, s Spec, d runtime.Daemon, ready func() bool) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, daemon.StartTimeout(r.options.StartTimeout, d))
	defer cancel()
	if err := r.clearName(ctx, s.Name, d.Role); err != nil {
		return "", err
	}
	if id, err = r.options.Engine.Create(ctx, s); err != nil {
		return "", fmt.Errorf("starting %s: %w", d.Role, r.explain(ctx, err))
	}
	if err = r.options.Engine.Start(ctx, id); err == nil {
		err = r.await(ctx, id, d, ready)
	}
	if err != nil {
		err = fmt.Errorf("starting %s: %w", d.Role, err)
		// An engine whose start hangs can hang here as well.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		return "", errors.Join(err, r.options.Engine.Remove(ctx, id))
	}
	return id, nil
}

// clearName removes what a killed run left under a name, and nothing else.
func (r *Runtime) clearName(ctx context.Context, name, role string) error {
	c, err := r.options.Engine.Inspect(ctx, name)
	switch {
	case errors.Is(err, ErrNoContainer):
		return nil
	case err != nil:
		return fmt.Errorf("starting %s: %w", role, err)
	case !r.owns(c):
		return fmt.Errorf("starting %s: the %s container %s was not made by ovs-offline for this working directory, and is left alone: rename it, remove it, or use another working directory (-w)", role, r.Name(), name)
	case c.Running:
		return fmt.Errorf("%s: %w in container %s", role, runtime.ErrRunning, name)
	}
	return r.options.Engine.Remove(ctx, c.ID)
}

// explain adds what to do where an engine's own words leave that open.
func (r *Runtime) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		if found, asked := r.options.Engine.FindImage(ctx, r.options.Image); asked == nil && found == "" {
			return fmt.Errorf("%w %s in %s: %s", runtime.ErrNoImage, r.options.Image, r.Name(), howToGetImage)
		}
	}
	return err
}

// await waits for a started container: until ready says so, or the container
// has ended, which is an error with what it said last. An engine's own wait
// looks four times a second; the sockets and files can be looked at all the time.
func (r *Runtime) await(ctx context.Context, id string, d runtime.Daemon, ready func() bool) error {
	const pause, between = 2 * time.Millisecond, 100 * time.Millisecond
	for asked := time.Now(); !ready(); {
		if time.Since(asked) > between {
			c, err := r.options.Engine.Inspect(ctx, id)
			if err == nil && !c.Running {
				return fmt.Errorf("it ended with exit code %d%s", c.Exit, r.lastWords(ctx, id, d))
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
			asked = time.Now()
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("it was not ready within %v: %w%s", daemon.StartTimeout(r.options.StartTimeout, d), ctx.Err(), r.lastWords(context.WithoutCancel(ctx), id, d))
			}
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// lastWords is what a container, and the log of its daemon, said last, as an
// appendix to an error.
func (r *Runtime) lastWords(ctx context.Context, id string, d runtime.Daemon) string {
	const most = 3
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	said, _ := r.options.Engine.Log(ctx, id, 10*most) // what can be had of it
	if d.Log != "" {
		raw, _ := os.ReadFile(stderrOf(d)) // there is none where it did not come so far
		said += string(raw)
	}
	var kept []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "|INFO|") && !strings.Contains(line, "|WARN|") {
			kept = append(kept, line)
		}
	}
	if fatal := daemon.FatalLine(d); fatal != "" && len(kept) == 0 {
		kept = append(kept, fatal)
	}
	if len(kept) == 0 {
		return ""
	}
	return ": " + strings.Join(kept[max(0, len(kept)-most):], "; ")
}
