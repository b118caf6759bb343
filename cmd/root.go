// Package cmd is the command line: each command turns its flags into one call
// and prints the result.
package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/logging"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/pods/link"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/set"
)

// version is set by the linker (see the Makefile).
var version = "unknown"

// options are the streams and flags that all commands share.
type options struct {
	IO
	workdir string
	runtime string
	podman  bool
	verbose bool

	inCluster bool // --runtime kubernetes; runtime is then that of what runs on this host

	nodes     []string  // of a set, selected with --node
	available *set.Node // the node of the command's workdir; nil until node is called
}

// Main runs one command line and returns the exit code.
func Main(args []string, streams IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the program at once, but only after a second, because
	// timeout(1) sends each signal twice: to the program and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	return run(ctx, args, streams, nil)
}

// run runs one command line until it ends or ctx does. Where open is nil, replicas in pods
// are those of clusters.
func run(ctx context.Context, args []string, streams IO, open link.Open) int {
	printed := &output{Writer: streams.Out}
	streams.Out = printed
	o := &options{IO: streams}
	if open == nil {
		open = o.openHost(pods.NewClusters(version))
	}
	links := link.New(open)
	ctx = link.NewContext(ctx, links)
	root := newRoot(o)
	root.SetArgs(args)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.InitDefaultCompletionCmd()
	wrapArgErrors(root)
	c, err := root.ExecuteContextC(ctx)
	if c == root && printed.err == nil { // it only prints help: the command line was not understood
		err = usageError(root, oneLine(err))
	}
	return exit(ctx, streams.Err, printed.check(errors.Join(err, links.Close())))
}

// Root returns the root command, from which man pages are written.
func Root() *cobra.Command { return newRoot(&options{IO: System()}) }

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:     programName,
		Short:   "Replay an Open vSwitch or OVN node offline",
		Version: version,
		Long: "ovs-offline collects the state of an Open vSwitch or OVN node from a cluster, an sos\n" +
			"report, a must-gather or files, and replays it with real daemons on this machine:\n" +
			"ovs-vsctl, ovs-ofctl, ovs-appctl ofproto/trace, ovn-nbctl and ovn-detrace answer as on\n" +
			"the node.",
		Example: "  ovs-offline collect-sos sosreport-compute-2-2026-10-13-ghresdq.tar.xz\n  ovs-offline start\n" +
			"  ovs-offline exec ovs-appctl ofproto/trace br-int in_port=1,icmp\n  ovs-offline stop",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: o.prepare,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(usageError)
	f := root.PersistentFlags()
	f.StringVarP(&o.workdir, "workdir", "w", usualWorkdir(), "working directory (or OVS_DBG_WORKDIR)")
	f.StringVar(&o.runtime, "runtime", cmp.Or(os.Getenv("OVS_OFFLINE_RUNTIME"), choose.Auto), "where daemons run: auto, podman, docker, process or kubernetes (or OVS_OFFLINE_RUNTIME)")
	f.BoolVarP(&o.podman, "podman", "p", false, "the same as --runtime=podman")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log programs run, sockets used and sources read, with timing, to stderr")
	root.AddCommand(
		newCollect(o), newCollectK8s(o), newInspect(o),
		newCollectSos(o, "collect-sos", "OVS/OVN", collect.Select{OVS: true, OVN: true}),
		newCollectSos(o, "collect-sos-ovs", "OVS", collect.Select{OVS: true}), newCollectSos(o, "collect-sos-ovn", "OVN", collect.Select{OVN: true}),
		newCollectDB(o, "collect-db-ovs", workdir.OVS), newCollectDB(o, "collect-db-ovn-nb", workdir.NB), newCollectDB(o, "collect-db-ovn-sb", workdir.SB),
		newStart(o), newTrace(o), newReach(o), newDrift(o), newWhatIf(o), newCompare(o), newFlows(o), newTop(o), newHistory(o),
		newStop(o), newStatus(o), newList(o), newLogs(o), newReport(o), newDiff(o), newShow(o), newExec(o), newShell(o), newTranslate(o), newGraph(o),
		newSave(o), newLoad(o), newMCP(o), newImage(o), newBuild(o), newDoctor(o), newPod(o))
	completeFlags(root)
	o.asCalled(root)
	return root
}

// prepare runs before every command.
func (o *options) prepare(c *cobra.Command, _ []string) error {
	if o.verbose {
		c.SetContext(logging.NewContext(c.Context(), o.Err))
	}
	if o.podman {
		o.runtime = engine.Podman
	}
	if !slices.Contains(runtimeNames(), o.runtime) {
		return fmt.Errorf("%w: --runtime (or OVS_OFFLINE_RUNTIME) takes one of %s, not %q", errUsage, strings.Join(runtimeNames(), ", "), o.runtime)
	}
	if o.runtime == pods.Name {
		o.inCluster, o.runtime = true, choose.Auto
	}
	if o.inCluster && c.Flags().Changed("runtime") && worksHere(c) {
		return fmt.Errorf("%w: %s works on this machine, not in a cluster", errUsage, c.CommandPath())
	}
	return nil
}

// worksHere reports whether a command has nothing to do with replicas in a cluster.
func worksHere(c *cobra.Command) bool {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	return slices.Contains([]string{"image", "build", "doctor"}, c.Name())
}

// oneLine puts the commands that cobra suggests in place of an unknown one on the
// line of its error.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	text, suggestions, found := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if !found {
		return err
	}
	return fmt.Errorf("%s (did you mean %s?)", text, strings.Join(strings.Fields(suggestions), " or "))
}

// usageError makes an error wrap errUsage and name the command's help.
func usageError(c *cobra.Command, err error) error {
	if err == nil || errors.Is(err, errUsage) {
		return err
	}
	return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
}

// wrapArgErrors makes argument errors of all commands, including cobra's own, usage
// errors.
func wrapArgErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return usageError(c, check(c, args)) }
	}
	for _, sub := range c.Commands() {
		wrapArgErrors(sub)
	}
}

// exactArgs works like cobra.ExactArgs, but its error names the arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return fmt.Errorf("%s takes %s (%d given)", c.Name(), cmp.Or(strings.Join(names, " "), "no arguments"), len(args))
	}
}

// usualWorkdir returns the workdir of commands without --workdir.
func usualWorkdir() string { return cmp.Or(os.Getenv("OVS_DBG_WORKDIR"), workdir.DefaultPath) }

// self returns the command line of ovs-offline for the same workdir, for pasting.
func (o *options) self(command string) string {
	if o.workdir == usualWorkdir() {
		return o.called() + " " + command
	}
	return o.called() + " -w " + shellWord(o.workdir) + " " + command
}

// runFunc is the function of a command that works on a workdir.
type runFunc func(ctx context.Context, wd *workdir.Dir, args []string) error

// refuseSet is the setFunc of commands that work on one node: it lists the nodes.
func refuseSet(_ context.Context, s *set.Set, _ []string) error {
	var below []string
	for _, n := range s.Nodes() {
		below = append(below, filepath.Join(s.Folder(), n.Name))
	}
	return fmt.Errorf("%w: %s is not the working directory of a node; choose one of those in it:\n%s", errUsage, s.Folder(), choices(below))
}

// choices returns a line for each workdir, with the flag that selects it.
func choices(workdirs []string) string {
	const most = 50
	var lines []string
	for _, path := range workdirs[:min(most, len(workdirs))] {
		lines = append(lines, "  -w "+shellWord(path))
	}
	if more := len(workdirs) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// withWorkdir returns a cobra function that calls run with the workdir of a node.
func (o *options) withWorkdir(run runFunc) func(*cobra.Command, []string) error {
	return o.workdirOrSet(run, refuseSet)
}

// withLock works like withWorkdir for commands that change the workdir: it creates a
// missing workdir, and holds its lock. After an error, it removes the workdir that it created
// if nothing came into it.
func (o *options) withLock(run runFunc) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		_, missing := os.Lstat(o.workdir)
		wd, err := workdir.Lock(o.workdir)
		if err != nil {
			return err
		}
		defer wd.Unlock()
		if err = run(c.Context(), wd, args); err != nil && missing != nil {
			wd.RemoveIfEmpty()
		}
		return err
	}
}

// node returns the node of the workdir.
func (o *options) node() *set.Node {
	if o.available == nil {
		o.available = set.At(o.workdir, version)
	}
	return o.available
}

// running returns the state of the replica.
func (o *options) running(ctx context.Context, wd *workdir.Dir) (replica.State, error) {
	return o.node().Running(ctx, wd)
}
