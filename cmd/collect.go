package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

const forceUsage = "replace data of the same kind in the working directory"

type collectOptions struct {
	inspectOptions
	force  bool
	dryRun bool
}

func newCollect(shared *options) *cobra.Command {
	o := &collectOptions{inspectOptions: inspectOptions{options: shared}}
	c := &cobra.Command{
		Use: "collect PATH...", Short: "Collect data from files: sos reports, must-gathers, databases, dumps", Args: cobra.MinimumNArgs(1),
		Long: "Collect data from files: sos reports, must-gathers, databases, ovs-save's output, dumps,\n" +
			"archives and folders of these. File types are detected by content.\n\n" +
			"A single node is collected into the working directory; several nodes each get a\n" +
			"subdirectory named after the node, which is a working directory itself. Data of one node\n" +
			"from several sources is combined.",
		Example: "  ovs-offline collect sosreport-worker-0-2026-10-13-ghresdq.tar.xz\n" +
			"  ovs-offline collect -w ./case must-gather.tar.gz sosreport-*.tar.xz\n" +
			"  ovs-offline collect --node worker-0 must-gather.tar.gz",
		RunE: func(c *cobra.Command, args []string) error {
			if o.dryRun {
				return o.inspectOptions.run(c.Context(), args)
			}
			return o.withLock(o.run)(c, args)
		},
	}
	o.addFlags(c)
	c.Flags().BoolVar(&o.force, "force", false, forceUsage)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what the files contain, as inspect does")
	return c
}

// collectedNode is the JSON output for one collected node.
type collectedNode struct {
	Name        string               `json:"name,omitempty"`
	Workdir     string               `json:"workdir"`
	Collections []workdir.Collection `json:"collections"`
	OVN         *collect.OVN         `json:"ovn,omitempty"`
}

// collectedInputs is the JSON output of collect.
type collectedInputs struct {
	Inputs []collect.Input `json:"inputs"`
	Nodes  []collectedNode `json:"nodes"`
	Lost   []string        `json:"lost"`
	// Remarks are findings about several nodes or inputs.
	Remarks []string `json:"remarks,omitempty"`
}

func (o *collectOptions) run(ctx context.Context, wd *workdir.Dir, paths []string) error {
	p := o.progress()
	written, found, err := collect.Collect(ctx, wd, collect.Files{Paths: paths, Limits: o.limits, Progress: p.bytes}, collect.Options{Force: o.force, Nodes: o.nodes})
	p.end()
	if err != nil {
		return explain(err, strings.Join(paths, " "))
	}
	out := collectedInputs{found.Inputs, []collectedNode{}, append([]string{}, found.Lost...), found.Remarks}
	lost := len(found.Lost) > 0
	for _, w := range written {
		out.Nodes = append(out.Nodes, collectedNode{w.Name, w.Path, w.Collections, &w.OVN})
		lost = lost || hasLost(w.Collections) || w.OVN.Lacking
	}
	if err := o.emit(out, func() { o.printCollected(out, wd) }); err != nil {
		return err
	}
	return incompleteIf(lost)
}

func (o *IO) printCollected(out collectedInputs, folder *workdir.Dir) {
	o.printInputs(out.Inputs)
	for _, n := range out.Nodes {
		o.headline("Offline OVS Debugging: data of %s collected and stored in %s", terminal.Escape(n.Name), n.Workdir)
		o.printCollections(n.Collections)
		o.printOVN(*n.OVN, len(out.Nodes) > 1, n.host())
	}
	o.warnEach("", out.Remarks)
	o.warnEach("could not be read: ", out.Lost)
	if first := out.Nodes[0].Workdir; first != folder.Path() {
		o.printNext(first)
	}
}

// printNext prints how to start the nodes that were collected together, one of which has
// this workdir.
func (o *IO) printNext(workdir string) {
	folder, name := filepath.Split(workdir)
	folder = shellWord(filepath.Clean(folder))
	fmt.Fprintf(o.Out, "Start all: ovs-offline -w %s start\nStart one: ovs-offline -w %s start --node %s\n", folder, folder, shellWord(name))
}

// collectOneOptions are the flags of the commands that collect from one path.
type collectOneOptions struct {
	*options
	force  bool
	limits archive.Limits
}

func newCollectSos(shared *options, name, data string, selected collect.Select) *cobra.Command {
	o := &collectOneOptions{options: shared}
	c := &cobra.Command{
		Use: name + " SOS", Short: "Collect " + data + " data from an sos report", Args: exactArgs("SOS"),
		Long: "Collect " + data + " data from an sos report: a .tar.xz, .tar.gz, .tar.bz2, .tar.zst, .tar,\n" +
			"or an extracted directory. OVS data is in the report of the node itself, OVN databases may\n" +
			"be in that of a controller or control plane node.",
		Example: "  ovs-offline " + name + " sosreport-compute-2-2026-10-13-ghresdq.tar.xz",
		RunE: o.withLock(func(ctx context.Context, wd *workdir.Dir, args []string) error {
			if o.format == formatTable {
				fmt.Fprintf(o.Out, "Extracting %s data from sos report...\n", data)
			}
			p := o.progress()
			source := collect.SosReport{Path: args[0], Limits: o.limits, Progress: p.bytes}
			return o.run(ctx, wd, source, p, selected, data, args[0])
		}),
	}
	o.outputFlag(c)
	c.Flags().BoolVar(&o.force, "force", false, forceUsage)
	limitFlags(c, &o.limits)
	return c
}

func newCollectDB(shared *options, name string, kind workdir.Kind) *cobra.Command {
	o := &collectOneOptions{options: shared}
	c := &cobra.Command{
		Use: name + " DBFILE", Short: "Collect the " + kind.Title() + " database from a file", Args: exactArgs("DBFILE"),
		Long: "Collect the " + kind.Title() + " database from a file of any name: standalone or of a cluster\n" +
			"member, optionally compressed with gzip.",
		Example: "  ovs-offline " + name + " " + filepath.Base(string(kind)) + ".db",
		RunE: o.withLock(func(ctx context.Context, wd *workdir.Dir, args []string) error {
			source := collect.DatabaseFile{Path: args[0], Kind: kind}
			return o.run(ctx, wd, source, o.progress(), collect.Select{Database: kind}, kind.Title(), args[0])
		}),
	}
	o.outputFlag(c)
	c.Flags().BoolVar(&o.force, "force", false, forceUsage)
	return c
}

// run collects a source of one node and prints what was collected.
func (o *collectOneOptions) run(ctx context.Context, wd *workdir.Dir, source collect.Source, p *progress, selected collect.Select, data, path string) error {
	written, _, err := collect.Collect(ctx, wd, source, collect.Options{Force: o.force, Select: selected})
	p.end()
	if err != nil {
		return explain(err, path)
	}
	collections, place := written[0].Collections, written[0].Path
	if err := o.emit(collectedNode{Workdir: place, Collections: collections}, func() {
		o.headline("Offline OVS Debugging: %s data collected and stored in %s", data, place)
		o.printCollections(collections)
	}); err != nil {
		return err
	}
	return incompleteIf(hasLost(collections))
}

// limitFlags adds the flag for a source's only limit that users can change.
func limitFlags(c *cobra.Command, limits *archive.Limits) {
	*limits = archive.Default()
	c.Flags().Int64Var(&limits.Bytes, "max-size", limits.Bytes, "refuse a source that is larger when unpacked, in bytes")
}

// printCollections prints a line for each collection, and its warnings.
func (o *IO) printCollections(collections []workdir.Collection) {
	for _, c := range collections {
		node, bridges := "", ""
		if c.Host != "" {
			node = " of " + terminal.Escape(c.Host)
		}
		if len(c.Bridges) > 0 {
			bridges = ", bridges " + terminal.Escape(fmt.Sprint(c.Bridges))
		}
		fmt.Fprintf(o.Out, "%s%s: %d files%s\n", c.Kind.Title(), node, len(c.Files), bridges)
		o.warnEach("", c.Remarks)
		for _, f := range c.Files {
			o.warnEach(f.Path+": ", f.Remarks)
		}
		o.warnEach("could not be read: ", c.Lost)
	}
}

// host returns the name of the node in its source.
func (n collectedNode) host() string {
	for _, c := range n.Collections {
		if c.Host != "" {
			return c.Host
		}
	}
	return ""
}

// printOVN prints where the OVN databases of a host are from, and why it has none. For a
// single host that has databases of its own, that is clear.
func (o *IO) printOVN(ovn collect.OVN, several bool, host string) {
	for _, f := range ovn.From {
		if several || f.Node != "" && f.Node != host {
			fmt.Fprintf(o.Out, "%s: from %s\n", titles(f.Kinds), terminal.Escape(f.String()))
		}
	}
	if ovn.Reason != "" && !ovn.Lacking { // what is lacking is a remark
		fmt.Fprintf(o.Out, "%s: none: %s\n", titles([]workdir.Kind{workdir.NB, workdir.SB}), terminal.Escape(ovn.Reason))
	}
}

// titles joins the names of OVN databases: "OVN NB, SB".
func titles(kinds []workdir.Kind) string {
	var words []string
	for _, k := range kinds {
		words = append(words, strings.TrimPrefix(k.Title(), "OVN "))
	}
	return "OVN " + strings.Join(words, ", ")
}

// hasLost reports whether a source held something that could not be read.
func hasLost(collections []workdir.Collection) bool {
	return slices.ContainsFunc(collections, func(c workdir.Collection) bool { return len(c.Lost) > 0 })
}

// incompleteIf returns errIncomplete if lost is set.
func incompleteIf(lost bool) error {
	if lost {
		return errIncomplete
	}
	return nil
}

// explain adds a next step to errors of the operating system.
func explain(err error, source string) error {
	switch {
	case archive.CannotWrite(err):
		return fmt.Errorf("%w: nothing was changed; make room on that disk", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s can't be read or the working directory can't be written", err, source)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("collecting %s: %w", source, err)
	}
	return err
}
