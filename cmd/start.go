package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/container"
)

type startOptions struct {
	*options
	strict     bool
	image      string
	ovsVersion string
}

func newStart(shared *options) *cobra.Command {
	o := &startOptions{options: shared}
	c := &cobra.Command{
		Use: "start", Short: "Start a replica of the collected node", Args: exactArgs(),
		Long: "Start a replica of the collected node. A replica that already runs is replaced.\n\n" +
			"Exit code 3 means that some of the collected data could not be restored; the report names it.",
		Example: "  ovs-offline start\n  ovs-offline start --runtime podman --ovs-version 3.1\n" +
			"  ovs-offline -w nodes/worker-0 start --strict -o json >report.json",
		RunE: o.oneNode(o.withLock(o.run)),
	}
	c.Flags().StringVar(&o.image, "image", "", "container image to run the daemons in")
	c.Flags().StringVar(&o.ovsVersion, "ovs-version", "", "choose an image with this version of Open vSwitch, or a prefix of it (3.1)")
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with code 3 also for placeholders and approximations")
	o.outputFlag(c)
	return c
}

func (o *startOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	recorded, err := replica.Recorded(ctx, wd)
	if err != nil {
		return err
	}
	if err := o.checkReachable(ctx, wd); err != nil {
		return err
	}
	runtimes := o.runtimes(wd)
	choice, err := runtimes.Choose(ctx, o.runtime, container.Wanted{Image: o.image, Version: o.ovsVersion, RecordedOVS: recorded.OVS})
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
		Everywhere: runtimes.All(ctx),
		Exec:       exec,
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
