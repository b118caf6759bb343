package cmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

type logsOptions struct {
	*options
	follow bool
	widest int // name of a node of a set, 0 for one node
}

func newLogs(shared *options) *cobra.Command {
	o := &logsOptions{options: shared}
	command := &cobra.Command{
		Use: "logs [DAEMON]", Short: "Print the log of a daemon, or of all daemons", Args: cobra.MaximumNArgs(1),
		Long: "Print the log of a daemon, or of all daemons in chronological order. With a folder of\n" +
			"several nodes, print the logs of all nodes.",
		Example: "  ovs-offline logs ovs-vswitchd -f",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return replica.Roles(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) error {
			err := o.withChosenNode(o.orInPod(always, o.withNodes(o.run)))(command, args)
			if o.follow && command.Context().Err() != nil {
				return nil // this is how it ends
			}
			return err
		},
	}
	o.nodeFlag(command)
	command.Flags().BoolVarP(&o.follow, "follow", "f", false, "keep printing new lines until interrupted")
	return command
}

func (o *logsOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	var dirs []*workdir.Dir
	for _, node := range selected.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return err
		}
		dirs = append(dirs, wd)
		if selected.Alone() {
			break
		}
		if link.Linked(wd) {
			return fault.Usagef("the replica of node %s runs in a pod, where its logs are: choose one such node with --node", node.Name)
		}
		o.widest = max(o.widest, len(node.Name))
	}
	return o.print(ctx, dirs, args)
}

func (o *logsOptions) print(ctx context.Context, dirs []*workdir.Dir, args []string) error {
	roles := args
	if len(roles) == 0 {
		roles = replica.Roles()
	}
	return replica.Logs(ctx, dirs, roles, o.follow, func(line replica.Line) error {
		prefix := ""
		if o.widest > 0 {
			prefix = fmt.Sprintf("%-*s ", o.widest, filepath.Base(line.Dir.Path()))
		}
		if len(args) == 0 {
			prefix += fmt.Sprintf("%-22s ", line.Role)
		}
		_, err := fmt.Fprintf(o.Out, "%s%s\n", terminal.Escape(prefix), terminal.Escape(line.Text))
		return err
	})
}
