package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"ovs-offline/answer/drift"
	"ovs-offline/internal/show"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

type driftOptions struct {
	*options
	detail bool
	northd bool
}

func newDrift(shared *options) *cobra.Command {
	o := &driftOptions{options: shared}
	command := &cobra.Command{
		Use: "drift [NODE]...", Short: "Find out whether a node has the flows that it should have",
		Long: "Compute the flows, groups and meters of OVN's integration bridge from the collected databases,\n" +
			"with an ovn-controller of the node's own release, and compare the recorded ones with them. Each\n" +
			"difference names the policy, load balancer, route or port that the flows are for.\n" +
			"No replica needs to run. Each NODE is one of a folder of several; without any, all are compared.\n\n" +
			"Exit code 3: the result is undetermined, for example without that release of OVN; the output has the reason.\n" +
			"Exit code 4: something differs.",
		Example: "  ovs-offline drift\n  ovs-offline -w nodes drift worker-2 --detail\n  ovs-offline drift --northd -o json | jq '.missing[].what'",
		Args: func(_ *cobra.Command, args []string) error {
			o.nodes = append(o.nodes, args...)
			return nil
		},
		ValidArgsFunction: shared.completeNodes,
		RunE:              o.orInPod(o.isForPods, o.withNodes(o.run)),
	}
	command.Flags().BoolVar(&o.northd, "northd", false, "also compare the logical flows with what ovn-northd computes from the NB database")
	detailFlag(command, &o.detail, "print each flow that differs, and what the differences do to packets")
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

func (o *driftOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	progress := o.progress()
	outcomes := snapshot.Each(ctx, selected.Snapshot, func(ctx context.Context, node *snapshot.Node, wd *workdir.Dir) (*drift.Report, error) {
		if o.isForPods() && link.Linked(wd) {
			return o.inPod(ctx, wd)
		}
		return drift.Check(ctx, wd, drift.Options{Runtime: o.runtime, Runtimes: runtimes(), Northd: o.northd, Meaning: timeForMeaning(o.detail),
			Chosen:   func(what string) { progress.note("%sruntime: %s", selected.Label(node), what) },
			Progress: func(text string) { progress.print("%s%s", selected.Label(node), text) }})
	})
	progress.end()
	if ctx.Err() != nil {
		return worst(snapshot.Failures(selected.Snapshot, outcomes)...)
	}
	errs := []error{emitNodes(&o.IO, selected.Snapshot, outcomes, func(page *show.Page) {
		for _, outcome := range snapshot.Values(outcomes) {
			outcome.Value.Print(page, selected.Label(outcome.Node), o.detail)
		}
	})}
	for _, outcome := range snapshot.Values(outcomes) {
		errs = append(errs, verdictError(outcome.Value))
	}
	return worst(errs...)
}

// isForPods reports whether a node whose replica runs in a pod is compared there, by the
// programs of its image: the user named no runtime of this machine.
func (o *driftOptions) isForPods() bool { return o.runtime == choose.Auto }

// inPod returns what drift finds out in the pod of a workdir's replica.
func (o *driftOptions) inPod(ctx context.Context, wd *workdir.Dir) (*drift.Report, error) {
	args := []string{"drift"}
	if o.northd {
		args = append(args, "--northd")
	}
	if o.detail {
		args = append(args, "--detail")
	}
	found := &drift.Report{}
	return found, set.DocumentInPod(ctx, wd, found, args...)
}

// verdictError returns the error that stands for a report's exit code.
func verdictError(found *drift.Report) error {
	switch {
	case found.Verdict == drift.Found:
		return errFound
	case found.Verdict == drift.Undetermined, len(found.Doubts) > 0:
		return errIncomplete
	}
	return nil
}
