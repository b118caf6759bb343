//go:build !linux

// Package process runs a replica's daemons as local processes: on Linux. Here it
// finds programs, and says that it runs none.
package process

import (
	"context"
	"errors"
	"io"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
)

// Supported says why local processes can't be had.
func Supported() error {
	return errors.New("local processes run on Linux only: use --runtime podman or docker")
}

// Main has nothing to do.
func Main() {}

// Options of New; there are none here.
type Options struct{}

// Runtime runs nothing.
type Runtime struct{}

var _ runtime.Runtime = (*Runtime)(nil)

// New makes a Runtime.
func New(Options) *Runtime { return &Runtime{} }

// Name is the spelling the command line uses.
func (*Runtime) Name() string { return "process" }

// Isolated tells that there are no namespaces.
func (*Runtime) Isolated(context.Context) (bool, string) { return false, Supported().Error() }

// Remarks has none.
func (*Runtime) Remarks() []string { return nil }

// Start fails.
func (*Runtime) Start(context.Context, runtime.Daemon) error { return Supported() }

// State tells that no daemon runs.
func (*Runtime) State(context.Context, runtime.Daemon) (runtime.State, error) {
	return runtime.State{}, nil
}

// Stop has nothing to stop.
func (*Runtime) Stop(context.Context, runtime.Daemon) error { return nil }

// Tool fails.
func (*Runtime) Tool(_ context.Context, _ string, _ io.Reader, argv ...string) ([]byte, error) {
	return nil, &command.Error{Argv: argv, Err: Supported()}
}

// ToolTo fails.
func (*Runtime) ToolTo(_ context.Context, _ string, _ io.Reader, _ io.Writer, argv ...string) error {
	return &command.Error{Argv: argv, Err: Supported()}
}

// Exec fails.
func (*Runtime) Exec(context.Context, runtime.Command) (int, error) { return 0, Supported() }

// End has nothing to do.
func (*Runtime) End(context.Context) error { return nil }
