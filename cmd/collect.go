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
	"ovs-offline/collect/dbfile"
	"ovs-offline/collect/inputs"
	"ovs-offline/collect/sos"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

func collectCommands(o *options) []*cobra.Command {
	return []*cobra.Command{
		newCollect(o),
		newCollectSos(o, "collect-sos SOS", "Collect OVS and OVN data from an sos report", "OVS/OVN", sos.Half{OVS: true, OVN: true}),
		newCollectSos(o, "collect-sos-ovs SOS", "Collect OVS data from an sos report (a compute or worker node's)", "OVS", sos.Half{OVS: true}),
		newCollectSos(o, "collect-sos-ovn SOS", "Collect OVN databases from an sos report (a controller's or a master's)", "OVN", sos.Half{OVN: true}),
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
			return o.collectInputs(c.Context(), args, inputs.Options{Nodes: nodes, Options: collect.Options{Force: force, Limits: limits}}, output)
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

func (o *options) collectInputs(ctx context.Context, args []string, opts inputs.Options, output string) error {
	return o.locked(func(wd *workdir.Dir) error {
		p := o.progress()
		opts.Progress = p.bytes
		written, found, err := inputs.Collect(ctx, wd, args, opts)
		p.end()
		if err != nil {
			return explain(err, strings.Join(args, " "))
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
	Inputs []inputs.Input  `json:"inputs"`
	Nodes  []collectedNode `json:"nodes"`
	Lost   []string        `json:"lost"`
}

func collectedReport(written []inputs.Written, found *inputs.Found) collectedInputs {
	out := collectedInputs{found.Inputs, []collectedNode{}, append([]string{}, found.Lost...)}
	for _, w := range written {
		out.Nodes = append(out.Nodes, collectedNode{w.Name, w.Path, w.Collections})
	}
	return out
}

func (o *options) printWritten(written []inputs.Written, found *inputs.Found) {
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

func newCollectSos(o *options, use, short, what string, half sos.Half) *cobra.Command {
	var force bool
	var limits archive.Limits
	var output string
	c := &cobra.Command{
		Use: use, Short: short, Args: exactly("SOS"),
		Long:    short + ": a .tar.xz, .tar.gz, .tar.bz2, .tar.zst, .tar, or an extracted directory.",
		Example: "  ovs-offline " + use[:len(use)-len("SOS")] + "sosreport-compute-2-2026-10-13-ghresdq.tar.xz",
		RunE: func(c *cobra.Command, args []string) error {
			return o.collect(func(wd *workdir.Dir, opts collect.Options) ([]workdir.Collection, error) {
				if output == forPeople {
					fmt.Fprintf(o.Out, "Extracting %s data from sos report...\n", what)
				}
				opts.Limits = limits
				return sos.Collect(c.Context(), wd, args[0], half, opts)
			}, what, args[0], force, output)
		},
	}
	outputFlag(c, &output)
	c.Flags().BoolVar(&force, "force", false, "replace data of the same kind that the workdir holds")
	limitFlags(c, &limits)
	return c
}

// limitFlags are those of what is read from hostile places.
func limitFlags(c *cobra.Command, limits *archive.Limits) {
	*limits = archive.Default()
	c.Flags().IntVar(&limits.Entries, "max-entries", limits.Entries, "refuse a source with more entries")
	c.Flags().Int64Var(&limits.FileBytes, "max-file-size", limits.FileBytes, "refuse a source with a larger file to collect, in bytes")
	c.Flags().Int64Var(&limits.Bytes, "max-size", limits.Bytes, "refuse a source that unpacks to more, in bytes")
	c.Flags().Int64Var(&limits.Ratio, "max-ratio", limits.Ratio, "refuse a source that unpacks to so many times its size")
}

func newCollectDB(o *options, use string, kind workdir.Kind) *cobra.Command {
	var force bool
	var output string
	c := &cobra.Command{
		Use: use, Short: "Collect the " + kind.Title() + " database from a file", Args: exactly("DBFILE"),
		Long:    "Collect the " + kind.Title() + " database from a file: standalone or of a cluster member, also gzip'd, whatever its name.",
		Example: "  ovs-offline " + use[:len(use)-len("DBFILE")] + filepath.Base(string(kind)) + ".db",
		RunE: func(c *cobra.Command, args []string) error {
			return o.collect(func(wd *workdir.Dir, opts collect.Options) ([]workdir.Collection, error) {
				one, err := dbfile.Collect(c.Context(), wd, kind, args[0], opts)
				return []workdir.Collection{one}, err
			}, kind.Title(), args[0], force, output)
		},
	}
	outputFlag(c, &output)
	c.Flags().BoolVar(&force, "force", false, "replace the "+kind.Title()+" database that the workdir holds")
	return c
}

// collect runs one collector and says what it put in place.
func (o *options) collect(run func(*workdir.Dir, collect.Options) ([]workdir.Collection, error), what, source string, force bool, output string) error {
	return o.locked(func(wd *workdir.Dir) error {
		p := o.progress()
		collections, err := run(wd, collect.Options{Force: force, Progress: p.bytes})
		p.end()
		if err != nil {
			return explain(err, source)
		}
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
