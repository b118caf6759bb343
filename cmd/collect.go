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
	"ovs-offline/internal/show"
	"ovs-offline/workdir"
)

const forceUsage = "replace data of the same kind in the working directory"

type collectOptions struct {
	inspectOptions
	force  bool
	dryRun bool
}

func newCollect(shared *options) *cobra.Command {
	o := &collectOptions{inspectOptions: inspectOptions{options: shared}}
	command := &cobra.Command{
		Use: "collect PATH...", Short: "Collect data from files: sos reports, must-gathers, databases, dumps", Args: cobra.MinimumNArgs(1),
		Long: "Collect data from files: sos reports, must-gathers, databases, ovs-save's output, dumps,\n" +
			"archives and folders of these. File types are detected by content.\n\n" +
			"A single node is collected into the working directory; several nodes each get a\n" +
			"subdirectory named after the node, which is a working directory itself. Data of one node\n" +
			"from several sources is combined.",
		Example: "  ovs-offline collect sosreport-worker-0-2026-10-13-ghresdq.tar.xz\n" +
			"  ovs-offline collect -w ./case must-gather.tar.gz sosreport-*.tar.xz\n" +
			"  ovs-offline collect --node worker-0 must-gather.tar.gz",
		RunE: func(command *cobra.Command, args []string) error {
			if o.dryRun {
				return o.inspectOptions.run(command.Context(), args)
			}
			return o.withLock(o.run)(command, args)
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.force, "force", false, forceUsage)
	command.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what the files contain, as inspect does")
	return command
}

func (o *collectOptions) run(ctx context.Context, wd *workdir.Dir, paths []string) error {
	progress := o.progress()
	written, found, err := collect.Collect(ctx, wd, collect.Files{Paths: paths, Limits: o.limits, Progress: progress.bytes}, collect.Options{Force: o.force, Nodes: o.nodes})
	progress.end()
	if err != nil {
		return explain(err, paths...)
	}
	out := collect.NewCollected(found, written)
	if err := o.emit(out, func(page *show.Page) { out.Print(page, wd) }); err != nil {
		return err
	}
	return incompleteIf(out.IsIncomplete())
}

// collectOneOptions are the flags of the commands that collect from one path.
type collectOneOptions struct {
	*options
	force  bool
	limits archive.Limits
}

func newCollectSos(shared *options, name, data string, selected collect.Select) *cobra.Command {
	o := &collectOneOptions{options: shared}
	command := &cobra.Command{
		Use: name + " SOS", Short: "Collect " + data + " data from an sos report", Args: exactArgs("SOS"),
		Long: "Collect " + data + " data from an sos report: a .tar.xz, .tar.gz, .tar.bz2, .tar.zst, .tar,\n" +
			"or an extracted directory. OVS data is in the report of the node itself, OVN databases may\n" +
			"be in the report of a controller or control plane node.",
		Example: "  ovs-offline " + name + " sosreport-compute-2-2026-10-13-ghresdq.tar.xz",
		RunE: o.withLock(func(ctx context.Context, wd *workdir.Dir, args []string) error {
			if o.format == formatTable {
				fmt.Fprintf(o.Out, "Extracting %s data from sos report...\n", data)
			}
			progress := o.progress()
			source := collect.SosReport{Path: args[0], Limits: o.limits, Progress: progress.bytes}
			return o.run(ctx, wd, source, progress, selected, data, args[0])
		}),
	}
	o.outputFlag(command)
	command.Flags().BoolVar(&o.force, "force", false, forceUsage)
	limitFlags(command, &o.limits)
	return command
}

func newCollectDB(shared *options, name string, kind workdir.Kind) *cobra.Command {
	o := &collectOneOptions{options: shared}
	command := &cobra.Command{
		Use: name + " DBFILE", Short: "Collect the " + kind.Title() + " database from a file", Args: exactArgs("DBFILE"),
		Long: "Collect the " + kind.Title() + " database from a file of any name: standalone or of a cluster\n" +
			"member, optionally compressed with gzip.",
		Example: "  ovs-offline " + name + " " + filepath.Base(string(kind)) + ".db",
		RunE: o.withLock(func(ctx context.Context, wd *workdir.Dir, args []string) error {
			source := collect.DatabaseFile{Path: args[0], Kind: kind}
			return o.run(ctx, wd, source, o.progress(), collect.Select{Database: kind}, kind.Title(), args[0])
		}),
	}
	o.outputFlag(command)
	command.Flags().BoolVar(&o.force, "force", false, forceUsage)
	return command
}

// run collects a source of one node and prints what was collected.
func (o *collectOneOptions) run(ctx context.Context, wd *workdir.Dir, source collect.Source, reading *progress, selected collect.Select, data, path string) error {
	written, _, err := collect.Collect(ctx, wd, source, collect.Options{Force: o.force, Select: selected})
	reading.end()
	if err != nil {
		return explain(err, path)
	}
	collections, place := written[0].Collections, written[0].Path
	if err := o.emit(collect.CollectedNode{Workdir: place, Collections: collections}, func(page *show.Page) {
		o.page().Headline("Offline OVS Debugging: %s data collected and stored in %s", data, place)
		collect.PrintCollections(o.page(), collections)
	}); err != nil {
		return err
	}
	return incompleteIf(collect.HasLost(collections))
}

// limitFlags adds the flag for a source's only limit that users can change.
func limitFlags(command *cobra.Command, limits *archive.Limits) {
	*limits = archive.Default()
	sizeFlag(command, &limits.Bytes, "max-size", "refuse a source that is larger when unpacked")
}

// incompleteIf returns errIncomplete if lost is set.
func incompleteIf(lost bool) error {
	if lost {
		return errIncomplete
	}
	return nil
}

// explain adds a next step to errors of the operating system.
func explain(err error, paths ...string) error {
	switch {
	case archive.CannotWrite(err):
		return fmt.Errorf("%w: nothing was changed; make room on that disk", err)
	case errors.Is(err, fs.ErrPermission):
		var failed *fs.PathError
		isOf := func(path string) bool {
			whole, _ := filepath.Abs(path)
			return strings.HasPrefix(failed.Path, path) || strings.HasPrefix(failed.Path, whole)
		}
		if errors.As(err, &failed) && slices.ContainsFunc(paths, isOf) {
			return fmt.Errorf("%w: another user may read it: change its owner or its mode", err)
		}
		return fmt.Errorf("%w: the working directory can't be written: choose another with -w", err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("collecting %s: %w", strings.Join(paths, " "), err)
	}
	return err
}
