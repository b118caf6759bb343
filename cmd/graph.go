package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"ovs-offline/internal/graph"
	"ovs-offline/internal/outfile"
	"ovs-offline/internal/workdir"
)

type graphOptions struct {
	*options
	logical  bool
	format   string
	filter   string
	collapse int
	force    bool
}

func newGraph(shared *options) *cobra.Command {
	o := &graphOptions{options: shared}
	c := &cobra.Command{
		Use: "graph [FILE]", Short: "Draw the node or its logical network", Args: cobra.MaximumNArgs(1),
		Long: "Draw the node: bridges, ports, patch ports, bonds with their active members, tunnels with\n" +
			"their remotes, and what was down; or with --logical the switches and routers of the OVN NB\n" +
			"database. The picture is drawn from the collected data: no replica needs to run.\n\n" +
			"FILE is made once the picture is complete. Without FILE, or with -, the picture is written\n" +
			"to standard output.",
		Example: "  ovs-offline graph node.svg\n" +
			"  ovs-offline graph --filter 'tap*' --collapse 0 taps.svg\n" +
			"  ovs-offline graph --logical --format dot | dot -Tpdf >network.pdf",
		RunE: o.withWorkdir(o.run),
	}
	c.Flags().BoolVar(&o.logical, "logical", false, "draw the logical network instead of the node")
	choiceFlag(c, &o.format, "format", "", "svg or dot", "svg", "dot")
	c.Flags().StringVar(&o.filter, "filter", "", "draw only what matches and its neighbours: a glob pattern, or part of a name, iface-id or address")
	c.Flags().IntVar(&o.collapse, "collapse", 100, "draw similar ports of a bridge as one if there are more than `N`; 0 draws all")
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE if it exists")
	_ = c.RegisterFlagCompletionFunc("filter", o.completeNames)
	return c
}

func (o *graphOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
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
	draw := g.SVG
	if o.format == "dot" {
		draw = g.DOT
	}
	if len(args) == 0 || args[0] == "-" {
		return o.print(draw)
	}
	_, err = outfile.Write(args[0], o.force, draw)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	return err
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
