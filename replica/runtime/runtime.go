// Package runtime says what a place that runs a replica's daemons has to do:
// start one daemon with its sockets in a directory, run a tool beside it, tell
// how it is, and end it. Nothing more: what the daemons are for is known to
// package replica alone.
package runtime

import (
	"context"
	"io"
)

// Daemon is one daemon of a replica. All paths are absolute.
type Daemon struct {
	Role    string   // unique within a replica and safe as a file name: "ovs-vswitchd", "ovsdb-server-ovn_nb"
	Program string   // "ovsdb-server" or "ovs-vswitchd"
	Args    []string // options and operands of its own; the runtime adds pid file, log file, detaching
	RunDir  string   // its OVS_RUNDIR: where its pid file, control socket and management sockets stand
	Log     string   // its log file
}

// Command is a program that a person runs beside the daemons.
type Command struct {
	Argv           []string
	Env            map[string]string // what is set besides; an empty text unsets
	Stdin          io.Reader         // nil for none
	Stdout, Stderr io.Writer
	Terminal       bool // standard input and output are a terminal
}

// Executor runs a program for a person where the daemons run.
type Executor interface {
	// Exec runs c beside the daemons: its streams are passed through and its exit
	// code is returned. An error means that it did not run to its end; it wraps
	// ErrNotInstalled when there is no such program.
	Exec(ctx context.Context, c Command) (exit int, err error)
}

// State is what a runtime knows of a daemon.
type State struct {
	Running bool
	PID     int    // as seen on this host; 0 when not running
	Problem string // why it is not running, when that is known
	// Container is the name of the container it runs in, "" where it is a process.
	Container string
}

// Runtime runs the daemons of one replica.
type Runtime interface {
	// Name is the spelling the command line uses: "process", "podman", "docker".
	Name() string
	// Isolated tells whether daemons get a network of their own, in which
	// nothing can be reached, and if not, why. It must be asked before a
	// database that names controllers is served to an ovs-vswitchd.
	Isolated(ctx context.Context) (bool, string)
	// Start starts d and returns when d says that it is ready (the daemons'
	// own --detach tells it), not after a time. A daemon of that role that
	// runs already is an error that wraps ErrRunning; leftovers of a killed
	// one are removed first. On any error, ctx's end among them, nothing of d
	// is left running.
	Start(ctx context.Context, d Daemon) error
	// State tells whether d runs. Asking is cheap and changes nothing.
	State(ctx context.Context, d Daemon) (State, error)
	// Stop ends d, gracefully first and by force after a bound, and removes
	// the pid file and sockets it left. A d that does not run is no error.
	Stop(ctx context.Context, d Daemon) error
	// Tool runs an ovs-* or ovn-* program of the runtime's own version beside
	// the daemons, with OVS_RUNDIR set to runDir, and returns its standard
	// output. stdin may be nil. The error is a *command.Error.
	Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error)
	// ToolTo is Tool, but writes the program's standard output to stdout as it
	// comes: a dump of a million flows is more than one wants to hold.
	ToolTo(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv ...string) error
	Executor
	// End removes what the runtime keeps for the replica besides its daemons,
	// once these are stopped, and whatever else of the replica is left there.
	End(ctx context.Context) error
	// Remarks are what the runtime could not do as it should (no namespaces
	// here, say): lines for the report, known once a daemon was started.
	Remarks() []string
}
