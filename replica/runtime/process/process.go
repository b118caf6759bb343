//go:build linux

// Package process runs a replica's daemons as local processes, each alone in an
// empty user and network namespace where the system allows that.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Supported says why local processes can't be had; here they can.
func Supported() error { return nil }

// Options of New. The zero value is what a replica wants.
type Options struct {
	StartTimeout time.Duration // bound of one daemon's start (see daemon.Patience); 0 means 30 s
	StopTimeout  time.Duration // how long a daemon may take to end by itself; 0 means 5 s
	NoNamespaces bool          // run without namespaces even where they can be had
}

// Runtime runs daemons as local processes. What runs is known from the locks
// on the pid files alone, so any number of Runtimes, one after the other or at
// once, see the same.
type Runtime struct {
	options Options

	mu      sync.Mutex
	probed  bool
	refused string // why there are no namespaces; "" when there are
	remarks daemon.Remarks
}

var _ runtime.Runtime = (*Runtime)(nil)

// New makes a Runtime. The program that starts daemons with it must call Main
// first of all in its own main.
func New(o Options) *Runtime {
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	return &Runtime{options: o}
}

// Name is the spelling the command line uses.
func (r *Runtime) Name() string { return "process" }

// Isolated tells whether daemons get an empty network namespace here, and if
// not, why. It tries once, by really making one and raising its loopback, so
// that a caller can take out of a database what a daemon must not dial before
// that daemon starts.
func (r *Runtime) Isolated(ctx context.Context) (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.probed {
		return r.refused == "", r.refused
	}
	refused := "it was asked to run without namespaces"
	if !r.options.NoNamespaces {
		refused = ""
		if err := probe(ctx); err != nil {
			refused = err.Error()
		}
	}
	if ctx.Err() != nil {
		return false, fmt.Sprintf("trying a namespace: %v", ctx.Err()) // says nothing of the system: ask again
	}
	r.probed, r.refused = true, refused
	if refused != "" {
		r.remarks.Add("daemons run without a network namespace of their own (" + refused +
			"): they hold no privileges, but share this host's network, so tunnels see its routes, and a controller or collector left in the database could be dialled")
	}
	return refused == "", refused
}

// Remarks are what could not be done as it should, and what daemons logged as
// an error while they started.
func (r *Runtime) Remarks() []string { return r.remarks.Lines() }

// State tells whether d runs: whether a process holds its pid file, that is.
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
		problem = "it ended without cleaning up, as a killed or crashed daemon does: " + daemon.PIDFile(d) + " is left over"
	}
	return runtime.State{Problem: problem}, nil
}

// Tool runs a local program with the replica's directories in a clean
// environment.
func (r *Runtime) Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error) {
	return tool(ctx, runDir, stdin, nil, argv)
}

// ToolTo is Tool with its output written as it comes.
func (r *Runtime) ToolTo(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv ...string) error {
	_, err := tool(ctx, runDir, stdin, stdout, argv)
	return err
}

func tool(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv []string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, &command.Error{Argv: []string{"?"}, Err: errors.New("no program named")}
	}
	path, err := Find(argv[0])
	if err != nil {
		return nil, &command.Error{Argv: argv, Err: err}
	}
	run := command.Command{Argv: append([]string{path}, argv[1:]...), Env: daemon.Environment(localPath(), runDir, runDir), Stdin: stdin, Stdout: stdout}
	out, err := command.Run(ctx, run)
	var failed *command.Error
	if errors.As(err, &failed) {
		failed.Argv = argv // as the caller wrote it, not where it was found
	}
	return out, err
}

// Exec runs a local program for a person, with the caller's own environment and
// what c sets in it.
func (r *Runtime) Exec(ctx context.Context, c runtime.Command) (int, error) {
	path, err := Find(c.Argv[0])
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, path, c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); !overrides(c.Env, name) {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	for name, value := range c.Env {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ctx.Err() == nil {
		const bySignal = 128 // as shells tell it
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return bySignal + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	return 0, err
}

func overrides(env map[string]string, name string) bool {
	_, set := env[name]
	return set
}

// End has nothing to do: a local replica is its daemons.
func (r *Runtime) End(context.Context) error { return nil }
