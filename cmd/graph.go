package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ovs-offline/answer/graph"
	"ovs-offline/internal/outfile"
	"ovs-offline/replica/set"
)

type graphOptions struct {
	*options
	logical  bool
	filter   string
	collapse int
	force    bool
}

func newGraph(shared *options) *cobra.Command {
	o := &graphOptions{options: shared}
	command := &cobra.Command{
		Use: "graph [FILE]", Short: "Draw the node or its logical network", Args: cobra.MaximumNArgs(1),
		Long: "Draw the node: bridges, ports, patch ports, bonds with their active members, tunnels with\n" +
			"their remotes, and what was down; or with --logical the switches and routers of the OVN NB\n" +
			"database. The picture is drawn from the collected data: no replica needs to run.\n\n" +
			"The nodes of a folder are one picture, with the tunnels between their ports; with --logical,\n" +
			"the newest copy of each OVN NB database is drawn.\n\n" +
			"FILE is made once the picture is complete. Without FILE, or with -, the picture is written\n" +
			"to standard output.",
		Example: "  ovs-offline graph node.svg\n" +
			"  ovs-offline graph --filter 'tap*' --collapse 0 taps.svg\n" +
			"  ovs-offline graph --logical -o dot | dot -Tpdf >network.pdf",
		RunE: o.withNodes(o.run),
	}
	o.nodeFlag(command)
	command.Flags().BoolVar(&o.logical, "logical", false, "draw the logical network instead of the node")
	choiceFlag(command, &o.format, "output", "o", "output format: svg or dot", "svg", "dot")
	choiceFlag(command, &o.format, "format", "", "the same as --output", "svg", "dot")
	_ = command.Flags().MarkHidden("format")
	command.Flags().StringVar(&o.filter, "filter", "", "draw only what matches and its neighbours: a glob pattern, or part of a name, iface-id or address")
	command.Flags().IntVar(&o.collapse, "collapse", 100, "draw similar ports of a bridge as one if there are more than `N`; 0 draws all")
	command.Flags().BoolVar(&o.force, "force", false, forceFileUsage)
	_ = command.RegisterFlagCompletionFunc("filter", o.completeNames)
	return command
}

// run draws the nodes, or with --logical the logical networks, as one picture.
func (o *graphOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	drawn, err := o.read(ctx, selected)
	if drawn == nil {
		return err
	}
	return worst(err, o.write(drawn, args))
}

func (o *graphOptions) read(ctx context.Context, selected *set.Set) (*graph.Graph, error) {
	if !o.logical {
		return graph.OfNodes(ctx, selected.Snapshot)
	}
	drawn, remarks, err := graph.OfNetworks(ctx, selected.Snapshot)
	o.page().WarnEach("", remarks)
	return drawn, err
}

func (o *graphOptions) write(drawn *graph.Graph, args []string) error {
	if o.filter != "" {
		matched, err := drawn.Filter(o.filter)
		if err != nil {
			return err
		}
		if matched == 0 {
			return fmt.Errorf("nothing matches %q: --filter takes a glob pattern that matches a whole name, or part of a name, iface-id or address", o.filter)
		}
	}
	if o.collapse > 0 {
		drawn.Collapse(o.collapse)
	}
	o.page().WarnEach("", drawn.Remarks)
	draw := drawn.SVG
	if o.format == "dot" {
		draw = drawn.DOT
	}
	if len(args) == 0 || args[0] == "-" {
		return o.print(draw)
	}
	_, err := outfile.Write(args[0], o.force, draw)
	return adviseForce(err)
}

// print writes a picture to standard output once it is complete.
func (o *graphOptions) print(draw func(io.Writer) error) error {
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return err
	}
	_, err := picture.WriteTo(o.Out)
	return err
}
