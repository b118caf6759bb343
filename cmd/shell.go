package cmd

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"os/signal"

	"github.com/spf13/cobra"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// withoutCtrlC leaves Ctrl-C to the program that runs in the foreground, however
// often it is pressed, until the function is called that it returns.
func withoutCtrlC() (again func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	return func() { signal.Stop(caught) }
}

func newShell(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "Run a shell in which the tools talk to the replica", Args: exactly(),
		Long: "Run a shell (SHELL) in which ovs-vsctl, ovs-ofctl, ovn-nbctl and the others talk to the\n" +
			"replica, as after sourcing activate. exit ends it; the exit code is the shell's.",
		Example: "  ovs-offline shell\n  echo 'ovs-vsctl show' | ovs-offline shell",
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			state, err := o.running(c.Context(), o.runtimes(wd), wd)
			if err != nil {
				return err
			}
			interactive := isTerminal(os.Stdin) && isTerminal(os.Stdout)
			argv, env := replica.Shell(wd, state.Kinds, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), interactive)
			// Ctrl-C is for what runs in the shell: the shell itself stays.
			shell := exec.Command(argv[0], argv[1:]...)
			shell.Env = append(os.Environ(), env...)
			shell.Stdin, shell.Stdout, shell.Stderr = c.InOrStdin(), o.Out, o.Err
			defer withoutCtrlC()()
			err = shell.Run()
			var ended *exec.ExitError
			if errors.As(err, &ended) && ended.ExitCode() > 0 {
				return exitCode(ended.ExitCode())
			}
			return err
		},
	}
}
