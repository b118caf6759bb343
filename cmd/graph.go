package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/graph"
	"ovs-offline/internal/workdir"
)

type graphOptions struct {
	*options
	logical  bool
	format   string
	filter   string
	collapse int
}

func newGraph(shared *options) *cobra.Command {
	o := &graphOptions{options: shared}
	c := &cobra.Command{
		Use: "graph", Short: "Draw the node or its logical network", Args: exactArgs(),
		Long: "Draw the node: bridges, ports, patch ports, bonds with their active members, tunnels with\n" +
			"their remotes, and what was down; or with --logical the switches and routers of the OVN NB\n" +
			"database. The picture is drawn from the collected data: no replica needs to run.",
		Example: "  ovs-offline graph >node.svg\n" +
			"  ovs-offline graph --filter 'tap*' --collapse 0 >taps.svg\n" +
			"  ovs-offline graph --logical --format dot | dot -Tpdf >network.pdf",
		RunE: o.withWorkdir(o.run),
	}
	c.Flags().BoolVar(&o.logical, "logical", false, "draw the logical network instead of the node")
	choiceFlag(c, &o.format, "format", "", "svg or dot", "svg", "dot")
	c.Flags().StringVar(&o.filter, "filter", "", "draw only what matches and its neighbours: a glob pattern, or part of a name, iface-id or address")
	c.Flags().IntVar(&o.collapse, "collapse", 100, "draw similar ports of a bridge as one if there are more than `N`; 0 draws all")
	_ = c.RegisterFlagCompletionFunc("filter", o.completeNames)
	return c
}

func (o *graphOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	read := graph.Node
	if o.logical {
		read = graph.Logical
	}
	g, err := read(ctx, wd)
	if err != nil {
		return err
	}
	if o.filter != "" {
		matched, err := g.Filter(o.filter)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if matched == 0 {
			return fmt.Errorf("nothing matches %q: --filter takes a glob pattern that matches a whole name, or part of a name, iface-id or address", o.filter)
		}
	}
	if o.collapse > 0 {
		g.Collapse(o.collapse)
	}
	o.warnEach("", g.Remarks)
	if o.format == "dot" {
		return g.DOT(o.Out)
	}
	return g.SVG(o.Out)
}
