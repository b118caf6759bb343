package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

type showOptions struct{ *options }

func newShow(shared *options) *cobra.Command {
	o := &showOptions{shared}
	command := &cobra.Command{
		Use: "show", Short: "Show the sockets and ports of the running replica", Args: exactArgs(),
		Long: "Show the sockets of the running replica, with the command lines that use them, the recorded\n" +
			"and the running versions, and the number of each port in the live node's datapath and in the\n" +
			"replica's.",
		Example: "  ovs-offline show\n  ovs-offline show -o json | jq .ports",
		RunE:    o.withNodes(o.run),
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// run prints the sockets and ports of each node.
func (o *showOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	outcomes := snapshot.Each(ctx, selected.Snapshot, func(ctx context.Context, node *snapshot.Node, wd *workdir.Dir) (replica.Shown, error) {
		return selected.Node(node).Shown(ctx, wd)
	})
	return emitNodes(&o.IO, selected.Snapshot, outcomes, func(page *show.Page) {
		snapshot.PrintEach(page, outcomes, func(page *show.Page, shown replica.Shown) { shown.Print(page) })
	})
}
