// Package runtime defines the interface of a runtime: it starts and stops the
// daemons of a replica, one at a time, and runs tools beside them. Only package replica
// knows the purpose of each daemon.
package runtime

import (
	"context"
	"errors"
	"io"
)

// Auto is the name of all runtimes together, on the command line.
const Auto = "auto"

// UsualShares returns the folders in which packages, or a build from source, install files that are not
// programs.
func UsualShares() []string { return []string{"/usr/share", "/usr/local/share"} }

// Errors that the errors of a runtime wrap.
var (
	ErrRunning      = errors.New("it is already running")
	ErrNotInstalled = errors.New("not installed") // the message names the package
	ErrNoImage      = errors.New("no image")      // the message describes how to get one
	ErrEnded        = errors.New("it ended")      // a daemon, as soon as it had started
	ErrNotRunning   = errors.New("no replica is running")
)

// Daemon is a daemon of a replica. All paths are absolute.
type Daemon struct {
	Role    string   // unique in a replica and valid as a file name: "ovs-vswitchd", "ovsdb-server-ovn_nb"
	Program string   // "ovsdb-server" or "ovs-vswitchd"
	Args    []string // its own options and operands; the runtime adds those for pid file, log file and detaching
	RunDir  string   // its OVS_RUNDIR, with its pid file, control socket and management sockets
	Log     string   // its log file
}

// Command is a program that the user runs beside the daemons.
type Command struct {
	Argv           []string
	Env            map[string]string // variables to set; an empty value unsets the variable
	Stdin          io.Reader         // nil for none
	Stdout, Stderr io.Writer
	Terminal       bool // standard input and output are a terminal
}

// Executor runs programs for the user beside the daemons.
type Executor interface {
	// Exec runs a command with its own streams and returns its exit code. An error means
	// that it did not run to its end; it wraps ErrNotInstalled if the program is missing.
	Exec(ctx context.Context, command Command) (exit int, err error)
}

// State is the state of a daemon.
type State struct {
	Running   bool
	PID       int    // as seen on this host; 0 when it does not run
	Problem   string // the reason why it does not run, where known
	Container string // name of its container, "" for a process
}

// Runtime runs the daemons of one replica.
type Runtime interface {
	// Name returns the runtime's name, as the command line spells it.
	Name() string
	// Root returns the folder on this host with the root file system that daemons and
	// tools run in; "" if they run in the host's own, or in an image of an engine.
	Root() string
	// Isolated reports whether daemons are kept from all networks, and the reason if not.
	// If they are, but not by a network of their own, it returns by what and why. Call it
	// before an ovs-vswitchd gets a database with controllers.
	Isolated(ctx context.Context) (bool, string)
	// HasLoopback reports whether daemons have a loopback interface of their own. Without
	// one, sFlow and IPFIX can open no collector, and are off.
	HasLoopback(ctx context.Context) bool
	// Start starts a daemon and returns when it is ready in the sense of its own
	// --detach. If it already runs, the error wraps ErrRunning. Start first removes
	// files that a killed daemon left. After an error, no process of it runs.
	Start(ctx context.Context, daemon Daemon) error
	// State returns the state of a daemon. The call is cheap and changes nothing.
	State(ctx context.Context, daemon Daemon) (State, error)
	// Stop stops a daemon, with SIGKILL if it does not end in time, and removes its pid file
	// and sockets. It is not an error if it does not run.
	Stop(ctx context.Context, daemon Daemon) error
	// Tool runs an ovs-* or ovn-* program of the runtime's version beside the
	// daemons, with OVS_RUNDIR set to runDir, and returns its standard output.
	// stdin may be nil. The error is a *command.Error.
	Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error)
	// ToolTo works like Tool, but writes the standard output to stdout while the
	// program runs: a dump of a million flows must not be held in memory.
	ToolTo(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv ...string) error
	// Shares returns the folders that may have what is installed with a program besides programs
	// ("share" in its prefix), the most likely first.
	Shares(program string) []string
	// ReadFile returns the file that the tools see at an absolute path, for example a
	// schema that is installed with them.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	Executor
	// End removes everything that the runtime keeps for the replica besides its
	// daemons. Call it after the daemons are stopped.
	End(ctx context.Context) error
	// Remarks returns lines for the report about what the runtime could not provide
	// and about errors that the daemons logged.
	Remarks() []string
}

// Sharer is a Runtime that can run a daemon for several replicas: tools find it by its
// files, wherever these are linked to.
type Sharer interface {
	Runtime
	// At returns a Runtime with the same programs for daemons whose files are in other
	// folders: workdir.RuntimeFolders of the home of a shared server.
	At(folders []string) Runtime
}
