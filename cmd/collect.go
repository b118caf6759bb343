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

func collectCommands(o *options) []*cobra.Command {
	return []*cobra.Command{
		newCollect(o),
		newCollectSos(o, "collect-sos SOS", "Collect OVS and OVN data from an sos report", "OVS/OVN", collect.Select{OVS: true, OVN: true}),
		newCollectSos(o, "collect-sos-ovs SOS", "Collect OVS data from an sos report (a compute or worker node's)", "OVS", collect.Select{OVS: true}),
		newCollectSos(o, "collect-sos-ovn SOS", "Collect OVN databases from an sos report (a controller's or a master's)", "OVN", collect.Select{OVN: true}),
		newCollectDB(o, "collect-db-ovs DBFILE", workdir.OVS),
		newCollectDB(o, "collect-db-ovn-nb DBFILE", workdir.NB),
		newCollectDB(o, "collect-db-ovn-sb DBFILE", workdir.SB),
	}
}

func newCollect(o *options) *cobra.Command {
	var force, dryRun bool
	var nodes []string
	var limits archive.Limits
	var output string
	c := &cobra.Command{
		Use: "collect PATH...", Short: "Collect whatever files hold: sos reports, must-gathers, databases, dumps", Args: paths,
		Long: "Collect whatever files hold: sos reports, must-gathers, databases, ovs-save's output, dumps,\n" +
			"archives and folders of such. What they are, their content says.\n\n" +
			"One node is put into the working directory. Of several, each gets a folder of the working\n" +
			"directory, named as the node, which is a working directory itself. What several sources tell\n" +
			"of one node comes together.",
		Example: "  ovs-offline collect sosreport-worker-0-2026-10-13-ghresdq.tar.xz\n" +
			"  ovs-offline collect -w ./case must-gather.tar.gz sosreport-*.tar.xz\n" +
			"  ovs-offline collect --node worker-0 must-gather.tar.gz",
		RunE: func(c *cobra.Command, args []string) error {
			if dryRun {
				return o.inspect(c.Context(), args, nodes, limits, output)
			}
			return o.collectInputs(c.Context(), collect.Files{Paths: args, Limits: limits}, collect.Options{Force: force, Nodes: nodes}, output)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace data of the same kind that the workdir holds")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what is there, as inspect does")
	c.Flags().StringArrayVar(&nodes, "node", nil, "only the node of that name (can be repeated)")
	outputFlag(c, &output)
	limitFlags(c, &limits)
	return c
}

// collectedNode is one node that was collected.
type collectedNode struct {
	Name        string               `json:"name,omitempty"`
	Workdir     string               `json:"workdir"`
	Collections []workdir.Collection `json:"collections"`
}

func (o *options) collectInputs(ctx context.Context, source collect.Files, opts collect.Options, output string) error {
	return o.locked(func(wd *workdir.Dir) error {
		p := o.progress()
		source.Progress = p.bytes
		written, found, err := collect.Collect(ctx, wd, source, opts)
		p.end()
		if err != nil {
			return explain(err, strings.Join(source.Paths, " "))
		}
		lost := len(found.Lost) > 0
		for _, w := range written {
			for _, c := range w.Collections {
				lost = lost || len(c.Lost) > 0
			}
		}
		err = o.emit(output, collectedReport(written, found), func() { o.printWritten(written, found) })
		if err == nil && lost {
			return errIncomplete
		}
		return err
	})
}

// collectedInputs is what collect reports.
type collectedInputs struct {
	Inputs []collect.Input `json:"inputs"`
	Nodes  []collectedNode `json:"nodes"`
	Lost   []string        `json:"lost"`
}

func collectedReport(written []collect.Written, found *collect.Found) collectedInputs {
	out := collectedInputs{found.Inputs, []collectedNode{}, append([]string{}, found.Lost...)}
	for _, w := range written {
		out.Nodes = append(out.Nodes, collectedNode{w.Name, w.Path, w.Collections})
	}
	return out
}

func (o *options) printWritten(written []collect.Written, found *collect.Found) {
	for _, in := range found.Inputs {
		fmt.Fprintf(o.Out, "%s: %s\n", terminal.Escape(in.Path), terminal.Escape(strings.Join(in.Kinds, ", ")))
	}
	for _, w := range written {
		headline(o.Out, fmt.Sprintf("Offline OVS Debugging: data of %s collected and stored in %s", terminal.Escape(w.Name), w.Path))
		for _, c := range w.Collections {
			o.printCollection(c)
		}
	}
	for _, l := range found.Lost {
		o.warn("could not be read: %s", l)
	}
	if len(written) > 1 {
		fmt.Fprintln(o.Out, "Each is a working directory of its own; start one with, for example:")
		fmt.Fprintf(o.Out, "  ovs-offline -w %s start\n", shellWord(written[0].Path))
	}
}

func newCollectSos(o *options, use, short, what string, selected collect.Select) *cobra.Command {
	var force bool
	var limits archive.Limits
	var output string
	c := &cobra.Command{
		Use: use, Short: short, Args: exactly("SOS"),
		Long:    short + ": a .tar.xz, .tar.gz, .tar.bz2, .tar.zst, .tar, or an extracted directory.",
		Example: "  ovs-offline " + use[:len(use)-len("SOS")] + "sosreport-compute-2-2026-10-13-ghresdq.tar.xz",
		RunE: func(c *cobra.Command, args []string) error {
			if output == forPeople {
				fmt.Fprintf(o.Out, "Extracting %s data from sos report...\n", what)
			}
			source := func(progress archive.Progress) collect.Source {
				return collect.SosReport{Path: args[0], Limits: limits, Progress: progress}
			}
			return o.collect(c.Context(), source, collect.Options{Force: force, Select: selected}, what, args[0], output)
		},
	}
	outputFlag(c, &output)
	c.Flags().BoolVar(&force, "force", false, "replace data of the same kind that the workdir holds")
	limitFlags(c, &limits)
	return c
}

// limitFlags adds the one flag that changes the limits of a source. The other
// limits are fixed.
func limitFlags(c *cobra.Command, limits *archive.Limits) {
	*limits = archive.Default()
	c.Flags().Int64Var(&limits.Bytes, "max-size", limits.Bytes, "refuse a source that unpacks to more, in bytes")
}

func newCollectDB(o *options, use string, kind workdir.Kind) *cobra.Command {
	var force bool
	var output string
	c := &cobra.Command{
		Use: use, Short: "Collect the " + kind.Title() + " database from a file", Args: exactly("DBFILE"),
		Long:    "Collect the " + kind.Title() + " database from a file: standalone or of a cluster member, also gzip'd, whatever its name.",
		Example: "  ovs-offline " + use[:len(use)-len("DBFILE")] + filepath.Base(string(kind)) + ".db",
		RunE: func(c *cobra.Command, args []string) error {
			source := func(archive.Progress) collect.Source { return collect.DatabaseFile{Path: args[0], Kind: kind} }
			return o.collect(c.Context(), source, collect.Options{Force: force, Select: collect.Select{Database: kind}}, kind.Title(), args[0], output)
		},
	}
	outputFlag(c, &output)
	c.Flags().BoolVar(&force, "force", false, "replace the "+kind.Title()+" database that the workdir holds")
	return c
}

// collect collects a source of one node and prints what was collected.
func (o *options) collect(ctx context.Context, source func(archive.Progress) collect.Source, opts collect.Options, what, path, output string) error {
	return o.locked(func(wd *workdir.Dir) error {
		p := o.progress()
		written, _, err := collect.Collect(ctx, wd, source(p.bytes), opts)
		p.end()
		if err != nil {
			return explain(err, path)
		}
		collections := written[0].Collections
		if err := o.emit(output, collectedNode{Workdir: wd.Path(), Collections: collections}, func() {
			headline(o.Out, fmt.Sprintf("Offline OVS Debugging: %s data collected and stored in %s", what, wd.Path()))
			for _, c := range collections {
				o.printCollection(c)
			}
		}); err != nil {
			return err
		}
		if slices.ContainsFunc(collections, func(c workdir.Collection) bool { return len(c.Lost) > 0 }) {
			return errIncomplete
		}
		return nil
	})
}

func (o *options) printCollection(c workdir.Collection) {
	node := ""
	if c.Host != "" {
		node = " of " + terminal.Escape(c.Host)
	}
	fmt.Fprintf(o.Out, "%s%s: %d files", c.Kind.Title(), node, len(c.Files))
	if len(c.Bridges) > 0 {
		fmt.Fprintf(o.Out, ", bridges %s", terminal.Escape(fmt.Sprint(c.Bridges)))
	}
	fmt.Fprintln(o.Out)
	for _, r := range c.Remarks {
		o.warn("%s", r)
	}
	for _, f := range c.Files {
		for _, r := range f.Remarks {
			o.warn("%s: %s", f.Path, r)
		}
	}
	for _, l := range c.Lost {
		o.warn("could not be read: %s", l)
	}
}

// explain adds the next step to errors of the system.
func explain(err error, source string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, collect.ErrNothing):
		return fmt.Errorf("%w: is the path right?", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: you may not read %s or not write to the workdir", err, source)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("collecting %s: %w", source, err)
	}
	return err
}
