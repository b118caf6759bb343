package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/logicalflows"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

type execOptions struct {
	*options
	netns string
}

func newExec(shared *options) *cobra.Command {
	o := &execOptions{options: shared}
	command := &cobra.Command{
		Use: "exec PROGRAM [ARGUMENT...]", Short: "Run a tool against the running replica", Args: cobra.MinimumNArgs(1),
		Long: "Run a tool against the running replica, with the environment that activate sets. If the\n" +
			"replica runs in containers or in an image, so does the tool. The exit code is the tool's.\n" +
			"Put the flags of ovs-offline before PROGRAM; everything after it is passed to the tool. In a\n" +
			"folder of several nodes, --node chooses one. With --netns, PROGRAM is one of this host, and runs\n" +
			"in that network namespace of the node, as \"ip netns exec\" would on the node.",
		Example:           "  ovs-offline exec ovs-vsctl --columns=name,ofport list interface\n  ovs-offline exec ovs-ofctl add-flows br-int - <flows.txt\n  ovs-offline -w nodes exec --node compute1 ovs-vsctl show\n  ovs-offline exec --netns qrouter-6d42 ip route get 8.8.8.8",
		ValidArgsFunction: completeTools,
		RunE:              o.withChosenNode(o.orInPod(always, o.withNode(o.run))),
	}
	o.nodeFlagFor(command, oneNode)
	o.netnsFlag(command, &o.netns)
	command.Flags().SetInterspersed(false)
	return command
}

func (o *execOptions) run(ctx context.Context, node *set.Node, wd *workdir.Dir, argv []string) error {
	state, err := node.Running(ctx, wd)
	if err != nil {
		return err
	}
	if o.netns != "" {
		return o.runInNamespace(ctx, wd, o.netns, argv, setVariables(replica.Scripts(wd, state.Kinds).Environment()))
	}
	command := runtime.Command{Argv: argv, Stdin: o.In, Stdout: o.stdout(), Stderr: o.Err, Terminal: o.interactive()}
	executor, err := node.Executor(ctx, wd, state, command.Terminal)
	if err != nil {
		return err
	}
	defer o.warnOfTrace(wd, argv[0]) // last: the tool can log hundreds of lines
	defer logging.Timed(ctx, "run tool", "argv", argv, "runtime", state.Runtime)()
	defer ignoreCtrlC()()
	command.Env = replica.Scripts(wd, state.Kinds).Environment()
	exit, err := executor.Exec(ctx, command)
	switch {
	case errors.Is(err, runtime.ErrNotInstalled):
		fmt.Fprintf(o.Err, "ovs-offline: %v\n", err)
		return exitCode(exitNotFound)
	case err != nil:
		return err
	case exit != 0:
		o.printAdvice(wd, state, filepath.Base(argv[0]), exit)
		return exitCode(exit)
	}
	return nil
}

// printAdvice prints what to do after a tool has failed because of ovs-vswitchd.
func (o *execOptions) printAdvice(wd *workdir.Dir, state replica.State, tool string, exit int) {
	advice := activate.LateAdvice(tool, exit)
	if ended := replica.Advice(wd, state); activate.AsksSwitch(tool) && ended != "" {
		advice = tool + ": " + ended
	}
	if advice != "" {
		fmt.Fprintln(o.Err, terminal.Escape(advice))
	}
}

// warnOfTrace prints what the user of ovn-trace must know.
func (o *execOptions) warnOfTrace(wd *workdir.Dir, program string) {
	if filepath.Base(program) != logicalflows.Program {
		return
	}
	if report, err := replica.Report(wd); err == nil { // status and report name the error
		o.page().WarnIfAny(replica.TraceWarning(wd, report))
	}
}

// ignoreCtrlC makes this process ignore SIGINT, which the program in the foreground
// also receives, until the returned function is called.
func ignoreCtrlC() (restore func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	return func() { signal.Stop(caught) }
}
