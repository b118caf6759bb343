package cmd

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/set"
)

type startOptions struct {
	*options
	strict   bool
	image    string
	versions versions.Pair
	chassis  []string
	pods     podFlags
	inPods   *pods.Options // nil for a start on this host
	saying   sync.Mutex    // see say
}

func newStart(shared *options) *cobra.Command {
	o := &startOptions{options: shared}
	c := &cobra.Command{
		Use: "start", Short: "Start a replica of the collected node", Args: exactArgs(),
		Long: "Start a replica of the collected node. A replica that already runs is replaced. With the\n" +
			"folder of several nodes' working directories, start one of each.\n\n" +
			"Where only OVN databases were collected, as from a must-gather, the switch of their only chassis,\n" +
			"or of those that --chassis names, is synthesised first. OVN of the databases' own release has\n" +
			"to be installed or among the images. The report lists what is assumed.\n\n" +
			"Of the tools installed here and the images, those run whose versions of Open vSwitch and OVN are\n" +
			"nearest to the node's: the same, else of the same minor version, else the nearest newer, else the\n" +
			"nearest older. \"ovs-offline image add\" adds an image.\n\n" +
			"Exit code 3 means that some of the collected data could not be restored, which the report names,\n" +
			"or that no switch could be synthesised.",
		Example: "  ovs-offline start\n  ovs-offline start --runtime podman --ovs-version 3.1 --ovn-version 23.03\n" +
			"  ovs-offline -w nodes start --node worker-0,worker-1\n" +
			"  ovs-offline -w gathered start --chassis worker-0\n" +
			"  ovs-offline -w nodes/worker-0 start --strict -o json >report.json",
	}
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if o.inPods, err = o.podOptions(c); err != nil {
			return err
		}
		return o.withSwitches(o.oneOrSet(o.withLock(o.run), o.runSet))(c, args)
	}
	c.Flags().StringSliceVar(&o.chassis, "chassis", nil, "where only OVN databases were collected: synthesise the switches of these chassis, by host name or system-id; \"all\" for all")
	_ = c.RegisterFlagCompletionFunc("chassis", cobra.NoFileCompletions)
	c.Flags().StringVar(&o.image, "image", "", "image to run the daemons in: one of \"image list\", or any of an engine; for --runtime kubernetes, one in a registry, or a repository to choose from")
	c.Flags().StringVar(&o.versions.OVS, "ovs-version", "", "run this version of Open vSwitch, or a prefix of it (3.1), not the nearest to the node's")
	c.Flags().StringVar(&o.versions.OVN, "ovn-version", "", "run this version of OVN, or a prefix of it (24.03)")
	_ = c.RegisterFlagCompletionFunc("image", o.completeImages)
	for _, flag := range []string{"ovs-version", "ovn-version"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with code 3 also for placeholders and approximations")
	o.nodeFlag(c)
	o.outputFlag(c)
	o.pods.add(c)
	return c
}

func (o *startOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	if err := endScratch(ctx, wd); err != nil {
		return err
	}
	r, err := o.start(ctx, wd)
	if err != nil {
		return err
	}
	if err := o.printStarted(wd, r); err != nil {
		return err
	}
	return o.incomplete(r)
}

// start starts the replica of a workdir on this host or in a cluster.
func (o *startOptions) start(ctx context.Context, wd *workdir.Dir) (*report.Report, error) {
	if o.inPods != nil {
		return o.runInPod(ctx, wd)
	}
	p := o.progress()
	defer p.end()
	return o.node().Start(ctx, wd, set.StartOptions{
		Runtime: o.runtime, Image: o.image, Versions: o.versions,
		Chosen: func(what string) { fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(what)) },
		Starting: func(role string) {
			p.end()
			if o.format == formatTable {
				fmt.Fprintf(o.Out, "Starting %s\n", role)
			}
		},
		Progress: func(step string) { p.print("restoring: %s", step) },
	})
}

// incomplete returns errIncomplete for a report on a replica that lacks something.
func (o *startOptions) incomplete(r *report.Report) error {
	return incompleteIf(!r.Complete() || o.strict && !r.Strict())
}

// notRestored is the beginning of a warning that goes with a report as JSON.
const notRestored = "not all collected data could be restored: see rejected, lost, different and logical_flows"

func (o *startOptions) printStarted(wd *workdir.Dir, r *report.Report) error {
	if o.format != formatTable {
		if !r.Complete() {
			o.warn("%s in the report, %s", notRestored, wd.ReportFile())
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
