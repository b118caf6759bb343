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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/logging"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/workdir"
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

	inCluster bool // --runtime kubernetes; runtime then chooses for programs on this host

	nodes []string // of a set, selected with --node
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

// run runs one command line until it ends or ctx does. If open is nil, it reaches replicas in
// pods through their cluster.
func run(ctx context.Context, args []string, streams IO, open link.Open) int {
	printed := &output{Writer: streams.Out}
	streams.Out = printed
	o := &options{IO: streams}
	if open == nil {
		open = openHost(pods.NewClusters(version), streams.Err)
	}
	links := link.New(open)
	ctx = link.NewContext(ctx, links)
	root := newRoot(o)
	root.SetArgs(args)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.InitDefaultCompletionCmd()
	wrapArgErrors(root)
	fitHelp(root, terminalWidth(o.Out))
	command, err := root.ExecuteContextC(ctx)
	if command == root && printed.err == nil { // it only prints help: the command line was not understood
		err = usageError(root, oneLine(err))
	}
	return exit(ctx, streams.Err, printed.check(errors.Join(o.caller(o.workdir).advise(err), links.Close())))
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
		Example: "  ovs-offline collect sosreport-compute-2-2026-10-13-ghresdq.tar.xz\n  ovs-offline check\n" +
			"  ovs-offline why vm-17 vm-18:22\n  ovs-offline start\n  ovs-offline exec ovs-appctl ofproto/trace br-int in_port=1,icmp\n" +
			"  ovs-offline report -o html >case.html\n  ovs-offline stop",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: o.prepare,
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetFlagErrorFunc(usageError)
	flags := root.PersistentFlags()
	flags.StringVarP(&o.workdir, "workdir", "w", usualWorkdir(), "working directory (or OVS_DBG_WORKDIR)")
	o.addRuntime(flags)
	_ = flags.MarkHidden("runtime")
	flags.BoolVarP(&o.podman, "podman", "p", false, "the same as --runtime=podman")
	_ = flags.MarkHidden("podman")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "log programs run, sockets used and sources read, with timing, to stderr")
	addCommands(root, o)
	completeFlags(root)
	showCaller(root, o.caller("").name())
	return root
}

// addCommands adds the commands in the groups in which the help lists them: what most users begin with, and the others in the
// order of a user's work. It hides older commands, and what pods run.
func addCommands(root *cobra.Command, o *options) {
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Begin with:", []*cobra.Command{newCollect(o), newCheck(o), newWhy(o), newStart(o), newReport(o)}},
		{"Collect:", []*cobra.Command{newCollectK8s(o), newInspect(o)}},
		{"Run a replica:", []*cobra.Command{newStatus(o), newShow(o), newExec(o), newShell(o), newLogs(o), newList(o), newStop(o)}},
		{"Ask:", []*cobra.Command{newTrace(o), newReach(o), newDrift(o), newCluster(o), newSlow(o), newBisect(o), newWhatIf(o), newShrink(o), newCompare(o), newHistory(o), newTimeline(o), newFlows(o), newTop(o), newDiff(o), newGraph(o)}},
		{"Share:", []*cobra.Command{newSave(o), newLoad(o), newMCP(o)}},
		{"Prepare this machine:", []*cobra.Command{newDoctor(o), newImage(o)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	for _, command := range []*cobra.Command{
		newCollectSos(o, "collect-sos", "OVS/OVN", collect.Select{OVS: true, OVN: true}),
		newCollectSos(o, "collect-sos-ovs", "OVS", collect.Select{OVS: true}), newCollectSos(o, "collect-sos-ovn", "OVN", collect.Select{OVN: true}),
		newCollectDB(o, "collect-db-ovs", workdir.OVS), newCollectDB(o, "collect-db-ovn-nb", workdir.NB), newCollectDB(o, "collect-db-ovn-sb", workdir.SB),
		newBuild(o), newPod(o), newTranslate(o),
	} {
		command.Hidden = true
		root.AddCommand(command)
	}
	cobra.EnableCommandSorting = false
}

// prepare runs before every command.
func (o *options) prepare(command *cobra.Command, _ []string) error {
	if o.verbose {
		ctx := logging.NewContext(command.Context(), o.Err)
		command.SetContext(ovsdb.WithLogger(ctx, logging.FromContext(ctx)))
	}
	o.call = o.caller(o.workdir).call()
	if err := command.ValidateFlagGroups(); err != nil { // cobra's own check gives it another exit code
		return usageError(command, err)
	}
	if o.podman {
		o.runtime = engine.Podman
	}
	if !slices.Contains(runtimeNames(), o.runtime) {
		return fault.Usagef("--runtime (or OVS_OFFLINE_RUNTIME) takes one of %s, not %q", strings.Join(runtimeNames(), ", "), o.runtime)
	}
	if o.runtime == pods.Name {
		o.inCluster, o.runtime = true, choose.Auto
	}
	if o.inCluster && command.Flags().Changed("runtime") && worksHere(command) {
		return fault.Usagef("%s works on this machine, not in a cluster", command.CommandPath())
	}
	return nil
}

// worksHere reports whether a command has nothing to do with replicas in a cluster.
func worksHere(command *cobra.Command) bool {
	for command.HasParent() && command.Parent().HasParent() {
		command = command.Parent()
	}
	return slices.Contains([]string{"image", "build", "doctor"}, command.Name())
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

// usageError gives an error the class Usage, and makes it name the command's help.
func usageError(command *cobra.Command, err error) error {
	if err == nil || fault.Of(err) == fault.Usage {
		return err
	}
	return fault.Usagef("%w; see %s --help", err, command.CommandPath())
}

// wrapArgErrors makes argument errors of all commands, including cobra's own, usage
// errors.
func wrapArgErrors(command *cobra.Command) {
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error { return usageError(command, check(command, args)) }
	}
	for _, sub := range command.Commands() {
		wrapArgErrors(sub)
	}
}

// exactArgs works like cobra.ExactArgs, but its error names the arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return fmt.Errorf("%s takes %s (%d given)", command.Name(), cmp.Or(strings.Join(names, " "), "no arguments"), len(args))
	}
}

// usualWorkdir returns the workdir of commands without --workdir.
func usualWorkdir() string { return cmp.Or(os.Getenv("OVS_DBG_WORKDIR"), workdir.DefaultPath) }

// caller returns how the user called the program, for command lines on another workdir.
func (o *options) caller(workdir string) caller { return caller{o.Program, workdir} }

// self returns the command line of ovs-offline for the same workdir, for pasting.
func (o *options) self(command string) string { return o.caller(o.workdir).line(command) }
