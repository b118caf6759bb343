package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newLogs(o *options) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "logs [DAEMON]", Short: "Print the log of a daemon, or of all", Args: cobra.MaximumNArgs(1),
		Long:    "Print the log of a daemon, or of all in the order of their times.",
		Example: "  ovs-offline logs ovs-vswitchd -f",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return replica.Roles(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			roles := args
			if len(roles) == 0 {
				roles = replica.Roles()
			}
			err = replica.Logs(c.Context(), wd, roles, follow, func(l replica.Line) error {
				before := ""
				if len(args) == 0 {
					before = fmt.Sprintf("%-22s ", l.Role)
				}
				_, err := fmt.Fprintf(o.Out, "%s%s\n", before, terminal.Escape(l.Text))
				return err
			})
			if errors.Is(err, replica.ErrNoDaemon) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return err
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until interrupted")
	return c
}
