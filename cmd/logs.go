package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

type logsOptions struct {
	*options
	follow bool
}

func newLogs(shared *options) *cobra.Command {
	o := &logsOptions{options: shared}
	c := &cobra.Command{
		Use: "logs [DAEMON]", Short: "Print the log of a daemon, or of all daemons", Args: cobra.MaximumNArgs(1),
		Long:    "Print the log of a daemon, or of all daemons in chronological order.",
		Example: "  ovs-offline logs ovs-vswitchd -f",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return replica.Roles(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := o.orInPod(always, o.withWorkdir(o.run))(c, args)
			if o.follow && c.Context().Err() != nil {
				return nil // this is how it ends
			}
			return err
		},
	}
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "keep printing new lines until interrupted")
	return c
}

func (o *logsOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	roles := args
	if len(roles) == 0 {
		roles = replica.Roles()
	}
	err := replica.Logs(ctx, wd, roles, o.follow, func(l replica.Line) error {
		prefix := ""
		if len(args) == 0 {
			prefix = fmt.Sprintf("%-22s ", l.Role)
		}
		_, err := fmt.Fprintf(o.Out, "%s%s\n", prefix, terminal.Escape(l.Text))
		return err
	})
	if errors.Is(err, replica.ErrNoDaemon) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
