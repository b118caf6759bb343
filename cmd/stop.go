package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
)

type stopOptions struct {
	*options
	purge bool
}

func newStop(shared *options) *cobra.Command {
	o := &stopOptions{options: shared}
	kubeconfig := newKubeconfig()
	var podFlags []string
	command := &cobra.Command{
		Use: "stop [SET...]", Short: "Stop the replica and keep the collected data", Args: cobra.ArbitraryArgs,
		Long: "Stop the replica and keep the collected data.\n\n" +
			"With --runtime kubernetes and the names of sets that \"list --runtime kubernetes\" prints, delete\n" +
			"these sets from the cluster, even if others started them.",
		Example: "  ovs-offline stop\n  ovs-offline stop --purge\n  ovs-offline -w nodes stop --node worker-0\n" +
			"  ovs-offline stop --runtime kubernetes --context lab --namespace debug q7zk2mw4xa",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := o.checkPodFlags(command, podFlags); err != nil {
			return err
		}
		switch {
		case len(args) == 0:
			if err := onlyWithSets(command, podFlags); err != nil {
				return err
			}
			return o.withNodes(o.run)(command, args)
		case !o.inCluster:
			return usageError(command, fmt.Errorf("%s takes SET only with --runtime %s", command.Name(), pods.Name))
		case o.purge || len(o.nodes) > 0:
			return usageError(command, errors.New("--purge and --node are for the replicas of a working directory, not for SET"))
		}
		return o.stopInCluster(command.Context(), kubeconfig, args)
	}
	o.runtimeFlag(command)
	o.nodeFlag(command)
	command.Flags().BoolVar(&o.purge, "purge", false, "also remove the collected data; files that ovs-offline did not write are kept")
	podFlags = addedFlags(command, func() { kubeconfig.addPlaceFlags(command.Flags()) })
	return command
}

// onlyWithSets returns an error for flags that select a cluster to delete sets from: the
// replica of a workdir is stopped where it was started.
func onlyWithSets(command *cobra.Command, names []string) error {
	for _, name := range names {
		if command.Flags().Changed(name) {
			return usageError(command, fmt.Errorf("--%s is for SET: the replica of a working directory is stopped in the cluster that it was started in", name))
		}
	}
	return nil
}

// stopInCluster deletes sets of replicas from a cluster.
func (o *stopOptions) stopInCluster(ctx context.Context, kubeconfig *kubeconfig, sets []string) error {
	if err := pods.Delete(ctx, &kubeconfig.Config, sets); err != nil {
		return err
	}
	o.page().Headline("Offline OVS Debugging stopped")
	fmt.Fprintf(o.Out, "Deleted: %s\n", strings.Join(sets, ", "))
	return nil
}

func (o *stopOptions) printLeft(path string, left []string) {
	if len(left) > 0 {
		fmt.Fprintf(o.Out, "These files in %s were not written by ovs-offline and stay:\n", path)
		for _, name := range left {
			fmt.Fprintf(o.Out, "  %s\n", terminal.Escape(name))
		}
	}
}

// run stops the replicas of the nodes, and with --purge removes what was collected.
func (o *stopOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if _, err := os.Stat(o.workdir); os.IsNotExist(err) {
		fmt.Fprintf(o.Out, "No replica runs in %s.\n", show.Word(o.workdir))
		return nil
	}
	if err := selected.EndScratch(ctx, runtimes()); err != nil {
		return err
	}
	where := cmp.Or(selected.Owner(), selected.Folder())
	outcomes := selected.Stop(ctx, o.purge)
	errs := snapshot.Failures(selected.Snapshot, outcomes)
	if selected.Alone() && len(errs) > 0 {
		return errs[0]
	}
	o.printStopped(selected, outcomes, where)
	if !o.purge {
		purge := "stop --purge"
		if len(o.nodes) > 0 {
			purge += " --node " + show.Word(strings.Join(o.nodes, ","))
		}
		fmt.Fprintf(o.Out, "Collected data stays in %s; %s removes it.\n", show.Word(where), o.self(purge))
	}
	for _, outcome := range snapshot.Values(outcomes) {
		wd, err := outcome.Node.Workdir()
		if err == nil {
			o.printLeft(wd.Path(), outcome.Value.Left)
		}
	}
	if o.purge && len(errs) == 0 {
		left, err := selected.PurgeOwner()
		o.printLeft(selected.Owner(), left)
		errs = append(errs, err)
	}
	return worst(errs...)
}

// printStopped prints which replicas were stopped.
func (o *stopOptions) printStopped(selected *set.Set, outcomes []snapshot.Outcome[set.Stopped], where string) {
	var stopped []string
	for _, outcome := range snapshot.Values(outcomes) {
		if outcome.Value.Started {
			stopped = append(stopped, outcome.Node.Name)
		}
	}
	switch {
	case len(stopped) > 0:
		o.page().Headline("Offline OVS Debugging stopped")
		if !selected.Alone() {
			fmt.Fprintf(o.Out, "Stopped: %s\n", terminal.Escape(phrase.FirstNames(stopped)))
		}
	case len(snapshot.Values(outcomes)) == len(outcomes):
		fmt.Fprintf(o.Out, "No replica runs in %s.\n", show.Word(where))
	}
}
