package cmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"ovs-offline/internal/logging"
	"ovs-offline/replica"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

type shellOptions struct {
	*options
	netns string
}

func newShell(shared *options) *cobra.Command {
	o := &shellOptions{options: shared}
	command := &cobra.Command{
		Use: "shell", Short: "Run a shell in which the tools talk to the replica", Args: exactArgs(),
		Long: "Run a shell (SHELL) in which ovs-vsctl, ovs-ofctl, ovn-nbctl and the other tools talk to\n" +
			"the replica, as after sourcing activate. The exit code is the shell's.\n" +
			"In a folder of several nodes, --node chooses one. With --netns, the shell runs in that network\n" +
			"namespace of the node.",
		Example: "  ovs-offline shell\n  ovs-offline shell --netns qrouter-6d42\n  echo 'ovs-vsctl show' | ovs-offline shell",
		RunE:    o.withChosenNode(o.orInPod(always, o.withNode(o.run))),
	}
	o.nodeFlagFor(command, oneNode)
	o.netnsFlag(command, &o.netns)
	return command
}

func (o *shellOptions) run(ctx context.Context, node *set.Node, wd *workdir.Dir, _ []string) error {
	state, err := node.Running(ctx, wd)
	if err != nil {
		return err
	}
	argv, env := replica.Scripts(wd, state.Kinds).Shell(cmp.Or(os.Getenv("SHELL"), "/bin/sh"), o.interactive())
	if o.netns != "" {
		return o.runInNamespace(ctx, wd, o.netns, argv, env)
	}
	return o.runProgram(ctx, argv, env)
}

// runProgram runs a program of this host, with variables added to its environment, and exits with its code. No
// context ends the program: Ctrl-C is meant for it.
func (o *options) runProgram(ctx context.Context, argv, env []string) error {
	program := exec.Command(argv[0], argv[1:]...)
	program.Env = append(os.Environ(), env...)
	program.Stdin, program.Stdout, program.Stderr = o.In, o.stdout(), o.Err
	defer logging.Timed(ctx, "run program", "argv", argv)()
	defer ignoreCtrlC()()
	err := program.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		return exitCode(ended.ExitCode())
	}
	return err
}
