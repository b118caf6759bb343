package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

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
		RunE: o.withLock(o.run),
	}
	c.Flags().StringVar(&o.image, "image", "", "container image to run the daemons in")
	c.Flags().StringVar(&o.ovsVersion, "ovs-version", "", "choose an image with this version of Open vSwitch, or a prefix of it (3.1)")
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with code 3 also for placeholders and approximations")
	o.outputFlag(c)
	return c
}

func (o *startOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	recorded, err := replica.Recorded(wd)
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
	fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(choice.Why))
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
			o.warn("not all collected data could be restored: see rejected, lost and different in the report, %s", wd.ReportFile())
		}
		return o.emit(r, nil)
	}
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	o.headline("Offline OVS Debugging started")
	sockets.Print(o.Out, shellWord)
	o.printSummary(wd, r)
	return nil
}
