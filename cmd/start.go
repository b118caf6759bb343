package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/container"
)

// startOptions are the flags of start.
type startOptions struct {
	strict     bool
	output     string
	image      string
	ovsVersion string
}

func newStart(o *options) *cobra.Command {
	var s startOptions
	c := &cobra.Command{
		Use: "start", Short: "Start a replica of what was collected", Args: exactly(),
		Long: "Start a replica of what was collected, in place of an earlier one.\n\n" +
			"Exit code 3 says that something collected could not be restored; the report names it.",
		Example: "  ovs-offline start\n  ovs-offline start --runtime podman --ovs-version 3.1\n" +
			"  ovs-offline -w nodes/worker-0 start --strict -o json >report.json",
		RunE: func(c *cobra.Command, _ []string) error {
			return o.locked(func(wd *workdir.Dir) error { return o.start(c, wd, s) })
		},
	}
	c.Flags().StringVar(&s.image, "image", "", "container image to start")
	c.Flags().StringVar(&s.ovsVersion, "ovs-version", "", "version of Open vSwitch that the image has inside, or its beginning (3.1)")
	c.Flags().BoolVar(&s.strict, "strict", false, "exit with 3 for placeholders and approximations as well")
	outputFlag(c, &s.output)
	return c
}

func (o *options) start(c *cobra.Command, wd *workdir.Dir, s startOptions) error {
	recorded, err := replica.Recorded(wd)
	if err != nil {
		return err
	}
	runtimes := o.runtimes(wd)
	if err := o.reachable(c.Context(), runtimes, wd); err != nil {
		return err
	}
	choice, err := runtimes.Choose(c.Context(), o.runtime, container.Wanted{Image: s.image, Version: s.ovsVersion, RecordedOVS: recorded.OVS})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(choice.Why))
	exec, err := runtimes.ExecPrefix(choice.Runtime)
	if err != nil {
		return err
	}
	p := o.progress()
	starting := func(role string) {
		p.end()
		if s.output == forPeople {
			fmt.Fprintf(o.Out, "Starting %s\n", role)
		}
	}
	report, err := replica.Start(c.Context(), wd, choice.Runtime, replica.Options{
		Everywhere: runtimes.All(c.Context()),
		Exec:       exec,
		Starting:   starting,
		Progress:   func(what string) { p.say("restoring: %s", what) },
	})
	p.end()
	if err != nil {
		return err
	}
	var unknown error
	if err := o.emit(s.output, report, func() {
		headline(o.Out, "Offline OVS Debugging started")
		unknown = o.show(wd)
		o.printReport(wd, report)
	}); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	if s.output != forPeople && !report.Complete() {
		o.warn("not all that was collected could be restored: see rejected, lost and different in the report, %s", wd.ReportFile())
	}
	if !report.Complete() || s.strict && !report.Strict() {
		return errIncomplete
	}
	return nil
}

// printReport says how faithful the replica is.
func (o *options) printReport(wd *workdir.Dir, r *report.Report) {
	printCounts(o.Out, r)
	printSteps(o.Err, r)
	for _, remark := range r.Remarks {
		o.warn("%s", remark)
	}
	const most = 10
	for i, item := range r.Rejected {
		if i == most {
			o.warn("%d more entries are set aside", total(r, func(c *report.Counts) int { return c.Rejected })-most)
			break
		}
		o.warn("set aside: %s: %s: %s", place(item), item.Reason, item.Text)
	}
	for _, l := range r.Lost {
		o.warn("could not be read when it was collected: %s", l)
	}
	fmt.Fprintf(o.Out, "The whole report is in %s\n", wd.ReportFile())
}
