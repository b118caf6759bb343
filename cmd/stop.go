package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/set"
)

type stopOptions struct {
	*options
	purge bool
}

func newStop(shared *options) *cobra.Command {
	o := &stopOptions{options: shared}
	kubeconfig := newKubeconfig()
	var podFlags []string
	ofWorkdir := o.oneOrSet(func(c *cobra.Command, args []string) error {
		if _, err := os.Stat(o.workdir); os.IsNotExist(err) {
			fmt.Fprintf(o.Out, "No replica runs in %s.\n", shellWord(o.workdir))
			return nil
		}
		return o.withLock(o.run)(c, args)
	}, o.runSet)
	c := &cobra.Command{
		Use: "stop [SET...]", Short: "Stop the replica and keep the collected data", Args: cobra.ArbitraryArgs,
		Long: "Stop the replica and keep the collected data.\n\n" +
			"With --runtime kubernetes and sets as \"list --runtime kubernetes\" names them, delete these from\n" +
			"the cluster, whoever started them.",
		Example: "  ovs-offline stop\n  ovs-offline stop --purge\n  ovs-offline -w nodes stop --node worker-0\n" +
			"  ovs-offline stop --runtime kubernetes --context lab --namespace debug q7zk2mw4xa",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.checkPodFlags(c, podFlags); err != nil {
			return err
		}
		switch {
		case len(args) == 0:
			if err := onlyWithSets(c, podFlags); err != nil {
				return err
			}
			return ofWorkdir(c, args)
		case !o.inCluster:
			return usageError(c, fmt.Errorf("%s takes SET only with --runtime %s", c.Name(), pods.Name))
		case o.purge || len(o.nodes) > 0:
			return usageError(c, errors.New("--purge and --node are for the replicas of a working directory, not for SET"))
		}
		return o.stopInCluster(c.Context(), kubeconfig, args)
	}
	o.nodeFlag(c)
	c.Flags().BoolVar(&o.purge, "purge", false, "also remove the collected data; files that ovs-offline did not write are kept")
	podFlags = addedFlags(c, func() { kubeconfig.addPlaceFlags(c.Flags()) })
	return c
}

// onlyWithSets returns an error for flags that select a cluster to delete sets from: the
// replica of a workdir is stopped where it was started.
func onlyWithSets(c *cobra.Command, names []string) error {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return usageError(c, fmt.Errorf("--%s is for SET: the replica of a working directory is stopped in the cluster that it was started in", name))
		}
	}
	return nil
}

// stopInCluster deletes sets of replicas from a cluster.
func (o *stopOptions) stopInCluster(ctx context.Context, kubeconfig *kubeconfig, sets []string) error {
	if err := pods.Delete(ctx, &kubeconfig.Config, sets); err != nil {
		return err
	}
	o.headline("Offline OVS Debugging stopped")
	fmt.Fprintf(o.Out, "Deleted: %s\n", strings.Join(sets, ", "))
	return nil
}

func (o *stopOptions) run(ctx context.Context, wd *workdir.Dir, _ []string) error {
	if err := endScratch(ctx, wd); err != nil {
		return err
	}
	started, err := o.node().Stop(ctx, wd)
	if err != nil {
		return err
	}
	if started {
		o.headline("Offline OVS Debugging stopped")
	} else {
		fmt.Fprintf(o.Out, "No replica runs in %s.\n", shellWord(wd.Path()))
	}
	if !o.purge {
		fmt.Fprintf(o.Out, "Collected data stays in %s; %s removes it.\n", shellWord(wd.Path()), o.self("stop --purge"))
		return nil
	}
	return o.purgeData(wd)
}

// purgeData removes the collected data, and prints which files stay.
func (o *stopOptions) purgeData(wd *workdir.Dir) error {
	left, err := wd.Purge()
	if err != nil {
		return err
	}
	o.printLeft(wd.Path(), left)
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

// runSet stops the replicas of a set.
func (o *stopOptions) runSet(ctx context.Context, s *set.Set, _ []string) error {
	if err := endScratches(ctx, s); err != nil {
		return err
	}
	where := cmp.Or(s.Owner(), s.Folder())
	outcomes := s.Stop(ctx, o.purge)
	var stopped []string
	for _, v := range values(outcomes) {
		if v.Value.Started {
			stopped = append(stopped, v.Node.Name)
		}
		o.printLeft(filepath.Join(s.Folder(), v.Node.Name), v.Value.Left)
	}
	errs := failures(outcomes)
	switch {
	case len(stopped) > 0:
		o.headline("Offline OVS Debugging stopped")
		fmt.Fprintf(o.Out, "Stopped: %s\n", terminal.Escape(recording.FirstNames(stopped)))
	case len(errs) == 0:
		fmt.Fprintf(o.Out, "No replica runs in %s.\n", shellWord(where))
	}
	if !o.purge {
		purge := "stop --purge"
		if len(o.nodes) > 0 {
			purge += " --node " + shellWord(strings.Join(o.nodes, ","))
		}
		fmt.Fprintf(o.Out, "Collected data stays in %s; %s removes it.\n", shellWord(where), o.self(purge))
	}
	if o.purge && len(errs) == 0 {
		left, err := s.PurgeOwner()
		o.printLeft(s.Owner(), left)
		errs = append(errs, err)
	}
	return worst(errs...)
}
