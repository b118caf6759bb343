package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/choose"
)

type startOptions struct {
	*options
	strict bool
	wanted choose.Wanted
}

func newStart(shared *options) *cobra.Command {
	o := &startOptions{options: shared}
	c := &cobra.Command{
		Use: "start", Short: "Start a replica of the collected node", Args: exactArgs(),
		Long: "Start a replica of the collected node. A replica that already runs is replaced.\n\n" +
			"Of the tools installed here and the images, those run whose versions of Open vSwitch and OVN are\n" +
			"nearest to the node's: the same, else of the same minor version, else the nearest newer, else the\n" +
			"nearest older. \"ovs-offline image add\" adds an image.\n\n" +
			"Exit code 3 means that some of the collected data could not be restored; the report names it.",
		Example: "  ovs-offline start\n  ovs-offline start --runtime podman --ovs-version 3.1 --ovn-version 23.03\n" +
			"  ovs-offline -w nodes/worker-0 start --strict -o json >report.json",
		RunE: o.oneNode(o.withLock(o.run)),
	}
	c.Flags().StringVar(&o.wanted.Image, "image", "", "image to run the daemons in: one of \"image list\", or any of an engine")
	c.Flags().StringVar(&o.wanted.Versions.OVS, "ovs-version", "", "run this version of Open vSwitch, or a prefix of it (3.1), not the nearest to the node's")
	c.Flags().StringVar(&o.wanted.Versions.OVN, "ovn-version", "", "run this version of OVN, or a prefix of it (24.03)")
	_ = c.RegisterFlagCompletionFunc("image", o.completeImages)
	for _, flag := range []string{"ovs-version", "ovn-version"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with code 3 also for placeholders and approximations")
	o.outputFlag(c)
	return c
}

func (o *startOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	var err error
	if o.wanted.Recorded, err = replica.Recorded(ctx, wd); err != nil {
		return err
	}
	if o.wanted.Loaded, err = loadedImage(wd); err != nil {
		return err
	}
	if err := o.checkReachable(ctx, wd); err != nil {
		return err
	}
	runtimes := o.runtimes(wd)
	choice, err := runtimes.Choose(ctx, o.runtime, o.wanted)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(choice.What))
	for _, reason := range choice.Rejected {
		logging.FromContext(ctx).Debug("choose runtime", "reason", reason)
	}
	exec, err := runtimes.ExecPrefix(choice.Runtime)
	if err != nil {
		return err
	}
	p := o.progress()
	r, err := replica.Start(ctx, wd, choice.Runtime, replica.Options{
		Everywhere:    runtimes.All(ctx),
		Exec:          exec,
		VersionsNamed: o.wanted.Image != "" || o.wanted.Versions != versions.Pair{},
		Starting: func(role string) {
			p.end()
			if o.format == formatTable {
				fmt.Fprintf(o.Out, "Starting %s\n", role)
			}
		},
		Progress: func(step string) { p.print("restoring: %s", step) },
	})
	p.end()
	if err != nil {
		return err
	}
	if err := o.printStarted(wd, r); err != nil {
		return err
	}
	if !r.Complete() || o.strict && !r.Strict() {
		return errIncomplete
	}
	return nil
}

// loadedImage returns the ID of the image that was loaded with the data; "" for none.
func loadedImage(wd *workdir.Dir) (string, error) {
	m, err := wd.Manifest()
	if err != nil {
		return "", err
	}
	for _, c := range m.Collections {
		if c.LoadedImage != "" {
			return c.LoadedImage, nil
		}
	}
	return "", nil
}

func (o *startOptions) printStarted(wd *workdir.Dir, r *report.Report) error {
	if o.format != formatTable {
		if !r.Complete() {
			o.warn("not all collected data could be restored: see rejected, lost, different and logical_flows in the report, %s", wd.ReportFile())
		}
		return o.emit(r, nil)
	}
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	o.headline("Offline OVS Debugging started")
	o.printUse(sockets, r)
	o.printSummary(wd, r)
	return nil
}

// printUse prints what runs, and how to use it.
func (o *startOptions) printUse(s replica.Sockets, r *report.Report) {
	fmt.Fprintf(o.Out, "Working directory: %s\n", shellWord(s.Workdir))
	var databases, bridges []string
	for _, k := range workdir.Kinds() {
		if s.Databases[string(k)] != "" {
			databases = append(databases, k.Title())
		}
	}
	for _, b := range r.Bridges {
		bridges = append(bridges, b.Name)
	}
	fmt.Fprintf(o.Out, "Databases: %s\n", strings.Join(databases, ", "))
	if len(bridges) > 0 {
		fmt.Fprintf(o.Out, "Bridges: %s\n", terminal.Escape(recording.FirstNames(bridges)))
	}
	fmt.Fprintf(o.Out, "\nYou can run offline commands directly with the following:\n\n    source %s\n\nor in a shell of its own: %s. All sockets and ports: %s.\n", shellWord(s.Activate), o.self("shell"), o.self("show"))
	s.PrintNotes(o.Out, shellWord)
	fmt.Fprintln(o.Out)
}
