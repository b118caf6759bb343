// Package cmd is the command line: it turns flags into one call each and
// prints what comes back. It has no logic of its own.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
)

// Exit codes.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
	exitNotFound   = 127 // of exec: as a shell tells it
)

// version is set by the linker (see the Makefile).
var version = "unknown"

// errIncomplete ends a command that did its work, but not all of it.
var errIncomplete = errors.New("incomplete")

// errUsage is wrapped by errors in the command line itself.
var errUsage = errors.New("wrong usage")

// IO is where a command reads and writes.
type IO struct {
	Out, Err io.Writer
	Terminal bool // Err is a terminal: progress may redraw its line
}

// System is the IO of the process.
func System() IO {
	return IO{Out: os.Stdout, Err: os.Stderr, Terminal: isTerminal(os.Stderr)}
}

// options are the flags of every command.
type options struct {
	IO
	workdir string
	runtime string
	podman  bool

	warnings int // so far
}

// Main runs one command line and returns the exit code. It is the one place
// that maps errors to exit codes.
func Main(args []string, streams IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends what doesn't heed the first, but not when both come at
	// once: timeout(1) sends two of every signal, to the program and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	root := newRoot(&options{IO: streams})
	root.SetArgs(args)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.InitDefaultCompletionCmd()
	blameArguments(root)
	err := root.ExecuteContext(ctx)
	var program exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &program):
		return int(program)
	case errors.Is(err, errIncomplete):
		return exitIncomplete
	case ctx.Err() != nil:
		fmt.Fprintln(streams.Err, "ovs-offline: interrupted")
		return exitFailed
	case errors.Is(err, errUsage):
		fmt.Fprintf(streams.Err, "ovs-offline: %s\n", terminal.EscapeLines(err.Error()))
		return exitUsage
	default:
		fmt.Fprintf(streams.Err, "ovs-offline: %s\n", terminal.EscapeLines(err.Error()))
		return exitFailed
	}
}

// Root is the program's command with all others below it, for what describes
// them: man pages.
func Root() *cobra.Command { return newRoot(&options{IO: System()}) }

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:     "ovs-offline",
		Short:   "Replay an Open vSwitch or OVN node offline",
		Version: version,
		Long: "ovs-offline collects what an Open vSwitch or OVN node was from a cluster, an sos report,\n" +
			"a must-gather or files, and replays it with real daemons on this machine, so that\n" +
			"ovs-vsctl, ovs-ofctl, ovs-appctl ofproto/trace, ovn-nbctl, ovn-detrace answer as on\n" +
			"the node.",
		Example: "  ovs-offline collect-sos sosreport-compute-2-2026-10-13-ghresdq.tar.xz\n  ovs-offline start\n" +
			"  ovs-offline exec -- ovs-appctl ofproto/trace br-int in_port=1,icmp\n  ovs-offline stop",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%w: unknown command %q; see ovs-offline --help", errUsage, args[0])
			}
			return c.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.checkRuntime() }
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
	})
	path := os.Getenv("OVS_DBG_WORKDIR")
	if path == "" {
		path = workdir.DefaultPath
	}
	root.PersistentFlags().StringVarP(&o.workdir, "workdir", "w", path, "working directory (or OVS_DBG_WORKDIR)")
	name := os.Getenv("OVS_OFFLINE_RUNTIME")
	if name == "" {
		name = choose.Auto
	}
	root.PersistentFlags().StringVar(&o.runtime, "runtime", name, "where daemons run: auto, podman, docker or process (or OVS_OFFLINE_RUNTIME)")
	root.PersistentFlags().BoolVarP(&o.podman, "podman", "p", false, "the same as --runtime=podman")
	root.AddCommand(collectCommands(o)...)
	root.AddCommand(newInspect(o))
	root.AddCommand(newCollectK8s(o))
	root.AddCommand(newStart(o), newShow(o), newTranslate(o), newStop(o), newExec(o), newBuild(o))
	root.AddCommand(newGraph(o), newReport(o), newDiff(o), newList(o), newSave(o), newLoad(o))
	root.AddCommand(newStatus(o), newLogs(o), newShell(o), newDoctor(o))
	completeFlags(root)
	return root
}

// blameArguments makes wrong usage of what cobra says of arguments, to its own
// commands as well.
func blameArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil || errors.Is(err, errUsage) {
				return err
			}
			return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
		}
	}
	for _, below := range c.Commands() {
		blameArguments(below)
	}
}

// checkRuntime makes one name of the flags for the runtime.
func (o *options) checkRuntime() error {
	if o.podman {
		o.runtime = engine.Podman
	}
	if !slices.Contains(choose.Names(), o.runtime) {
		return fmt.Errorf("%w: --runtime (or OVS_OFFLINE_RUNTIME) takes one of %s, not %q", errUsage, strings.Join(choose.Names(), ", "), o.runtime)
	}
	return nil
}

// running tells what runs in the workdir. Where replica.json is lost, all runtimes
// are asked.
func (o *options) running(ctx context.Context, runtimes *choose.Runtimes, wd *workdir.Dir) (replica.State, error) {
	return replica.Find(ctx, wd, func() []runtime.Runtime { return runtimes.All(ctx) })
}

// reachable returns an error when the workdir's replica runs in an engine that
// does not answer: nothing can be ended there.
func (o *options) reachable(ctx context.Context, runtimes *choose.Runtimes, wd *workdir.Dir) error {
	name, err := replica.Touched(wd)
	if err != nil || name == "" {
		return nil // then it is looked for in all that answer
	}
	if _, err := runtimes.Named(ctx, name); err != nil {
		return fmt.Errorf("the replica in %s was started in %s, and can't be ended: %w", wd.Path(), name, err)
	}
	return nil
}

func (o *options) runtimes(wd *workdir.Dir) *choose.Runtimes { return choose.For(wd, version) }

// exactly takes as many arguments as names, two at the most; the error tells them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			what := []string{"no argument", "one argument", "two arguments"}[len(names)]
			if len(names) > 0 {
				what += " (" + strings.Join(names, " ") + ")"
			}
			return fmt.Errorf("%w: %s takes %s, got %d; see %s --help", errUsage, c.Name(), what, len(args), c.CommandPath())
		}
		return nil
	}
}

// locked runs f with the workdir locked.
func (o *options) locked(f func(*workdir.Dir) error) error {
	wd, err := workdir.Lock(o.workdir)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	return f(wd)
}

// warn writes a warning. What warnings say comes from a source, which may have
// a million things to say: the rest is where they come from, in reports.
func (o *options) warn(format string, args ...any) {
	const most, longest = 500, 4096 // warnings; bytes of one
	o.warnings++
	switch {
	case o.warnings < most:
		fmt.Fprintf(o.Err, "warning: %s\n", terminal.EscapeLines(openflow.Shorten(fmt.Sprintf(format, args...), longest)))
	case o.warnings == most:
		fmt.Fprintln(o.Err, "warning: there is more, which is not printed")
	}
}
