package cmd

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ovs-offline/internal/graph"
	"ovs-offline/internal/workdir"
)

func newGraph(o *options) *cobra.Command {
	var logical bool
	var output, filter string
	var collapse int
	c := &cobra.Command{
		Use: "graph", Short: "Draw the node, or its logical network", Args: exactly(),
		Long: "Draw the node: bridges, ports, patch pairs, bonds with their active members, tunnels with\n" +
			"their remotes, and what was down; or with --logical the switches and routers of the OVN NB\n" +
			"database. It is read from what was collected: no replica needs to run.",
		Example: "  ovs-offline graph >node.svg\n" +
			"  ovs-offline graph --filter 'tap*' --collapse 0 >taps.svg\n" +
			"  ovs-offline graph --logical -o dot | dot -Tpdf >network.pdf",
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"svg", "dot"}, output) {
				return fmt.Errorf("%w: --output takes svg or dot, not %q", errUsage, output)
			}
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			read := graph.Node
			if logical {
				read = graph.Logical
			}
			g, err := read(c.Context(), wd)
			if err != nil {
				return err
			}
			return o.graph(g, filter, collapse, output)
		},
	}
	c.Flags().BoolVar(&logical, "logical", false, "the logical network instead of the node")
	c.Flags().StringVarP(&output, "output", "o", "svg", "svg or dot")
	c.Flags().StringVar(&filter, "filter", "", "only what matches, and what that is joined to: a glob pattern, or a part of a name, iface-id or address")
	c.Flags().IntVar(&collapse, "collapse", 100, "draw more than `N` like ports of a bridge as one; 0 for never")
	_ = c.RegisterFlagCompletionFunc("filter", o.completeNames)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"svg", "dot"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *options) graph(g *graph.Graph, filter string, collapse int, output string) error {
	if filter != "" {
		matched, err := g.Filter(filter)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if matched == 0 {
			return fmt.Errorf("nothing matches %q: the filter takes a glob pattern of a whole name, or a part of a name, iface-id or address", filter)
		}
	}
	if collapse > 0 {
		g.Collapse(collapse)
	}
	for _, remark := range g.Remarks {
		o.warn("%s", remark)
	}
	if output == "dot" {
		return g.DOT(o.Out)
	}
	return g.SVG(o.Out)
}
