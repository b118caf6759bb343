package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/release"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/replica/synth"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

type startOptions struct {
	*options
	strict   bool
	image    string
	versions versions.Pair
	chassis  []string
	build    string // the text whose commands make the node; "" for collected data
	pods     podFlags
	inPods   *pods.Options // nil for a start on this host
}

func newStart(shared *options) *cobra.Command {
	o := &startOptions{options: shared}
	command := &cobra.Command{
		Use: "start", Short: "Start a replica of the collected node", Args: exactArgs(),
		Long: "Start a replica of the collected node. A replica that already runs is replaced. With the\n" +
			"folder of several nodes' working directories, start one of each.\n\n" +
			"Where only OVN databases were collected, as from a must-gather, start first synthesises the\n" +
			"switch of their only chassis, or the switches of the chassis that --chassis names. OVN of the\n" +
			"databases' own release has to be installed or among the images. Of the NB database alone, --chassis\n" +
			"has ovn-northd compute the SB database first. The report lists what is assumed.\n\n" +
			"--build makes the node of commands instead: it carries out the commands of ovs-vsctl, ovs-ofctl and\n" +
			"ovn-nbctl in a ticket, a guide or a script on an empty replica, as argument lists without a shell, and\n" +
			"has ovn-northd and ovn-controller compute the flows. A command that reads a file, names an address or\n" +
			"is not on the list of what a node is made of is refused and named.\n\n" +
			"ovs-offline runs the installed tools, or the image, whose versions of Open vSwitch and OVN are\n" +
			"closest to the node's: the same version, then the same minor version, then the next newer one, then\n" +
			"the next older one. \"ovs-offline image add\" adds an image.\n\n" +
			"Exit code 3 means that some of the collected data could not be restored, or a command not carried\n" +
			"out, which the report names, or that no switch could be synthesised.",
		Example: "  ovs-offline start\n  ovs-offline start --runtime podman --ovs-version 3.1 --ovn-version 23.03\n" +
			"  ovs-offline -w nodes start --node worker-0,worker-1\n" +
			"  ovs-offline -w gathered start --chassis worker-0\n  ovs-offline -w lab start --build ticket.md\n" +
			"  ovs-offline -w nodes/worker-0 start --strict -o json >report.json",
	}
	command.RunE = func(command *cobra.Command, args []string) (err error) {
		if o.inPods, err = o.podOptions(command); err != nil {
			return err
		}
		return o.synthesiseAndStart(command, args)
	}
	command.Flags().StringSliceVar(&o.chassis, "chassis", nil, "where only OVN databases were collected: synthesise the switches of these chassis, by host name or system-id; \"all\" for all")
	_ = command.RegisterFlagCompletionFunc("chassis", cobra.NoFileCompletions)
	command.Flags().StringVar(&o.build, "build", "", "carry out the commands of this text (- for standard input) on an empty node, in an empty working directory")
	command.Flags().StringVar(&o.image, "image", "", "image to run the daemons in: one of \"image list\", or any of an engine; for --runtime kubernetes, one in a registry, or a repository to choose from")
	command.Flags().StringVar(&o.versions.OVS, "ovs-version", "", "run this version of Open vSwitch, or one that begins so (3.1), instead of the closest to the node's")
	command.Flags().StringVar(&o.versions.OVN, "ovn-version", "", "run this version of OVN, or one that begins so (24.03)")
	_ = command.RegisterFlagCompletionFunc("image", completeImages(&o.runtime))
	for _, flag := range []string{"ovs-version", "ovn-version"} {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	command.Flags().BoolVar(&o.strict, "strict", false, "exit with code 3 also for placeholders and approximations")
	o.runtimeFlag(command)
	o.nodeFlag(command)
	command.MarkFlagsMutuallyExclusive("build", "node")
	o.outputFlag(command)
	o.pods.add(command)
	return command
}

// synthesiseAndStart makes up the switches of nodes that have only OVN databases, and starts the
// replicas. Where a switch can't be made up, the replica has the databases alone, and the exit code
// shows it.
func (o *startOptions) synthesiseAndStart(command *cobra.Command, args []string) error {
	if o.build != "" {
		if err := o.carryOut(command.Context()); err != nil {
			return err
		}
	}
	options := synth.Options{Chassis: o.chassis, Release: release.Options{Runtime: o.runtime, Runtimes: runtimes()}, Version: version}
	progress := o.progress()
	lacking, err := set.Synthesise(command.Context(), o.workdir, o.nodes, options, func(line string) { progress.note("%s", line) })
	if err != nil {
		return err
	}
	return worst(o.withNodes(o.run)(command, args), incompleteIf(lacking))
}

// run starts the replicas of the nodes, and prints what they lack: of a set in one table.
func (o *startOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if err := selected.EndScratch(ctx, runtimes()); err != nil {
		return err
	}
	comparison := make(chan snapshot.Comparison, 1)
	if !selected.Alone() {
		go func() { comparison <- selected.CompareDatabases(ctx) }() // reading takes as long as starting
	}
	outcomes, err := o.start(ctx, selected)
	if err != nil {
		return err
	}
	errs := snapshot.Failures(selected.Snapshot, outcomes)
	for _, outcome := range snapshot.Values(outcomes) {
		errs = append(errs, o.incomplete(outcome.Value))
	}
	if selected.Alone() {
		for _, outcome := range snapshot.Values(outcomes) {
			errs = append(errs, o.printStarted(outcome))
		}
		return worst(errs...)
	}
	differences := <-comparison
	if ctx.Err() != nil {
		return worst(errs...)
	}
	return worst(append(errs, o.printSet(selected, outcomes, differences))...)
}

// start starts the replicas on this host or in a cluster. An error concerns all.
func (o *startOptions) start(ctx context.Context, selected *set.Set) ([]snapshot.Outcome[*report.Report], error) {
	if o.inPods != nil {
		return o.startInPods(ctx, selected)
	}
	progress := o.progress()
	outcomes := selected.Start(ctx, func(node *snapshot.Node) set.StartOptions {
		return set.StartOptions{
			Runtime: o.runtime, Image: o.image, Versions: o.versions,
			Chosen: func(what string) { progress.note("%sruntime: %s", selected.Label(node), what) },
			Starting: func(role string) {
				if o.format == formatTable {
					progress.noteOn(o.Out, "%sStarting %s", selected.Label(node), role)
				}
			},
			Progress: func(step string) { progress.print("%srestoring: %s", selected.Label(node), step) },
		}
	}, func(node *snapshot.Node, memory string) { progress.note("%swarning: %s", selected.Label(node), memory) })
	progress.end()
	return outcomes, nil
}

func (o *startOptions) printSet(selected *set.Set, outcomes []snapshot.Outcome[*report.Report], differences snapshot.Comparison) error {
	started := snapshot.Values(outcomes)
	if o.format != formatTable {
		for _, outcome := range started {
			if !outcome.Value.Complete() {
				o.page().Warn("node %s: %s in its report", outcome.Node.Name, notRestored)
			}
		}
		return emitReports(&o.IO, selected, outcomes, differences, nil)
	}
	if len(started) > 0 {
		o.page().Headline("Offline OVS Debugging started")
	}
	if err := emitReports(&o.IO, selected, outcomes, differences, func(page *show.Page) { set.PrintReports(page, outcomes) }); err != nil || len(started) == 0 {
		return err
	}
	for _, outcome := range started {
		outcome.Value.Warn(o.page(), outcome.Node.Name)
	}
	fmt.Fprintf(o.Out, "\nAll sockets, and how to use them: %s. What each replica lacks: %s.\nWho reaches whom, and which rule drops a packet: %s.\n", o.self("show"), o.self("report --node NODE"), o.self("trace FROM TO"))
	return nil
}

// incomplete returns errIncomplete for a report on a replica that lacks something.
func (o *startOptions) incomplete(found *report.Report) error {
	return incompleteIf(!found.Complete() || o.strict && !found.Strict())
}

// notRestored is the beginning of a warning that goes with a report as JSON.
const notRestored = "not all collected data could be restored: see rejected, lost, different and logical_flows"

// printStarted prints the report of a workdir alone.
func (o *startOptions) printStarted(started snapshot.Outcome[*report.Report]) error {
	found := started.Value
	wd, err := started.Node.Workdir()
	if err != nil {
		return err
	}
	if o.format != formatTable {
		if !found.Complete() {
			o.page().Warn("%s in the report, %s", notRestored, wd.ReportFile())
		}
		return o.emit(found, nil)
	}
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	o.page().Headline("Offline OVS Debugging started")
	o.printUse(sockets, found)
	found.PrintSummary(o.page(), wd.ReportFile())
	return nil
}

// printUse prints what runs, and how to use it.
func (o *startOptions) printUse(sockets replica.Sockets, found *report.Report) {
	fmt.Fprintf(o.Out, "Working directory: %s\n", show.Word(sockets.Workdir))
	var databases, bridges []string
	for _, kind := range workdir.Kinds() {
		if sockets.Databases[string(kind)] != "" {
			databases = append(databases, kind.Title())
		}
	}
	for _, bridge := range found.Bridges {
		bridges = append(bridges, bridge.Name)
	}
	fmt.Fprintf(o.Out, "Databases: %s\n", strings.Join(databases, ", "))
	if len(bridges) > 0 {
		fmt.Fprintf(o.Out, "Bridges: %s\n", terminal.Escape(phrase.FirstNames(bridges)))
	}
	fmt.Fprintf(o.Out, "\nYou can run offline commands directly with the following:\n\n    source %s\n\n", show.Word(sockets.Activate))
	page := o.page()
	page.Printf("%s\n", show.Fold(fmt.Sprintf("or in a shell of its own: %s. All sockets and ports: %s.", o.self("shell"), o.self("show")), page.Width, ""))
	sockets.PrintNotes(page)
	fmt.Fprintln(o.Out)
}
