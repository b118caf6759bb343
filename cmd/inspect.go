package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/temporary"
)

// inspectOptions are the flags of inspect, and of collect.
type inspectOptions struct {
	*options
	nodes  []string
	limits archive.Limits
}

func newInspect(shared *options) *cobra.Command {
	o := &inspectOptions{options: shared}
	command := &cobra.Command{
		Use: "inspect PATH...", Short: "Show what files contain, and what a replica of them could answer", Args: cobra.MinimumNArgs(1),
		Long: "Show what files contain (sos reports, must-gathers, databases, ovs-save's output, dumps,\n" +
			"archives and folders of these), and what a replica of them could and could not answer.\n" +
			"Nothing is collected.",
		Example: "  ovs-offline inspect must-gather.tar.gz sosreport-*.tar.xz",
		RunE:    func(command *cobra.Command, args []string) error { return o.run(command.Context(), args) },
	}
	o.addFlags(command)
	return command
}

func (o *inspectOptions) addFlags(command *cobra.Command) {
	command.Flags().StringArrayVar(&o.nodes, "node", nil, "only the node with this name (can be repeated)")
	limitFlags(command, &o.limits)
	o.outputFlag(command)
}

func (o *inspectOptions) run(ctx context.Context, paths []string) error {
	spool, remove, err := temporary.Folder("inspect")
	if err != nil {
		return err
	}
	defer remove()
	progress := o.progress()
	found, plans, err := collect.Inspect(ctx, collect.Files{Paths: paths, Limits: o.limits, Progress: progress.bytes}, spool, o.nodes)
	progress.end()
	if err != nil {
		return explain(err, paths...)
	}
	out := collect.NewInspection(found, plans)
	if err := o.emit(out, out.Print); err != nil {
		return err
	}
	return incompleteIf(out.IsIncomplete())
}
