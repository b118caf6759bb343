package cmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

// exitCode ends a command with the exit code of the program that it ran.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func newExec(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "exec -- PROGRAM [ARGUMENT...]", Short: "Run a tool beside the running replica, against it",
		Long: "Run a tool beside the running replica, with the settings of activate: in its container,\n" +
			"where it runs in one. The exit code is the tool's.",
		Example: "  ovs-offline exec -- ovs-vsctl show\n  ovs-offline exec -- ovs-ofctl add-flows br-int - <flows.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: exec takes a program and its arguments, for example: ovs-offline exec -- ovs-vsctl show", errUsage)
			}
			return nil
		},
		ValidArgsFunction: completeTools,
		RunE: func(c *cobra.Command, args []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			return o.exec(c, wd, args)
		},
	}
}

func (o *options) exec(c *cobra.Command, wd *workdir.Dir, argv []string) error {
	runtimes := o.runtimes(wd)
	state, err := o.running(c.Context(), runtimes, wd)
	if err != nil {
		return err
	}
	run := runtime.Command{Argv: argv, Stdin: os.Stdin, Stdout: o.Out, Stderr: o.Err, Terminal: isTerminal(os.Stdin) && isTerminal(os.Stdout)}
	executor, err := runtimes.Executor(c.Context(), state.Runtime, run.Terminal)
	if err != nil {
		return fmt.Errorf("the replica in %s runs in %s: %w", wd.Path(), state.Runtime, err)
	}
	defer withoutCtrlC()()
	exit, err := replica.Exec(c.Context(), wd, state.Kinds, executor, run)
	switch {
	case errors.Is(err, runtime.ErrNotInstalled):
		fmt.Fprintf(o.Err, "ovs-offline: %v\n", err)
		return exitCode(exitNotFound)
	case err != nil:
		return err
	case exit != 0:
		return exitCode(exit)
	}
	return nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
