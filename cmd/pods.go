package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/set"
)

// runtimeNames lists the values of --runtime.
func runtimeNames() []string { return append(choose.Names(), pods.Name) }

// podFlags are the flags of a start in a cluster.
type podFlags struct {
	kubeconfig  *kubeconfig
	keep        time.Duration
	selector    map[string]string
	tolerations []string
	secrets     []string
	names       []string // of the flags
}

// add adds the flags to a command.
func (p *podFlags) add(c *cobra.Command) {
	p.kubeconfig = newKubeconfig()
	p.names = addedFlags(c, func() {
		f := c.Flags()
		p.kubeconfig.addPlaceFlags(f)
		f.DurationVar(&p.keep, "keep", 8*time.Hour, "with --runtime kubernetes: how long the cluster keeps the replicas")
		f.StringToStringVar(&p.selector, "node-selector", nil, "with --runtime kubernetes: run on nodes of the cluster with these labels (for example disktype=ssd)")
		f.StringArrayVar(&p.tolerations, "toleration", nil, "with --runtime kubernetes: run on nodes with this taint, KEY=VALUE:EFFECT (can be repeated)")
		f.StringSliceVar(&p.secrets, "image-pull-secret", nil, "with --runtime kubernetes: secret with the credentials of the image's registry (can be repeated)")
	})
	for _, name := range []string{"keep", "node-selector", "toleration", "image-pull-secret"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// addedFlags returns the names of the flags that add adds to a command.
func addedFlags(c *cobra.Command, add func()) (names []string) {
	before := map[string]bool{}
	c.Flags().VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	add()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !before[f.Name] {
			names = append(names, f.Name)
		}
	})
	return names
}

// checkPodFlags returns an error for flags of the command that go with a cluster only.
func (o *options) checkPodFlags(c *cobra.Command, names []string) error {
	if o.inCluster {
		return nil
	}
	for _, name := range names {
		if c.Flags().Changed(name) {
			return usageError(c, fmt.Errorf("--%s is for --runtime %s", name, pods.Name))
		}
	}
	return nil
}

// podOptions returns the options of a start in a cluster, without functions that print;
// nil for a start on this host.
func (o *startOptions) podOptions(c *cobra.Command) (*pods.Options, error) {
	if err := o.checkPodFlags(c, o.pods.names); err != nil || !o.inCluster {
		return nil, err
	}
	if o.image == "" {
		return nil, usageError(c, pods.ErrNoImage)
	}
	if o.pods.keep < time.Second {
		return nil, usageError(c, fmt.Errorf("--keep takes at least one second, not %s", o.pods.keep))
	}
	options := &pods.Options{
		Kubeconfig: &o.pods.kubeconfig.Config, Image: o.image, Versions: o.versions, Keep: o.pods.keep,
		NodeSelector: o.pods.selector, PullSecrets: o.pods.secrets,
	}
	for _, text := range o.pods.tolerations {
		t, err := pods.ParseToleration(text)
		if err != nil {
			return nil, usageError(c, fmt.Errorf("--toleration: %w", err))
		}
		options.Tolerations = append(options.Tolerations, t)
	}
	return options, nil
}

// printing returns the options with functions that print.
func (o *startOptions) printing(p *progress) pods.Options {
	options := *o.inPods
	options.Say = func(node, text string) {
		o.saying.Lock()
		defer o.saying.Unlock()
		p.end()
		if node != "" {
			text = node + ": " + text
		}
		fmt.Fprintln(o.Err, terminal.Escape(text))
	}
	options.Progress = func(text string) {
		o.saying.Lock()
		defer o.saying.Unlock()
		p.print("%s", text)
	}
	return options
}

// runInPod starts the replica of a workdir in a cluster.
func (o *startOptions) runInPod(ctx context.Context, wd *workdir.Dir) (*report.Report, error) {
	p := o.progress()
	defer p.end()
	return o.node().StartInPod(ctx, wd, o.printing(p))
}

// runSetInPods starts the replicas of a set in a cluster.
func (o *startOptions) runSetInPods(ctx context.Context, s *set.Set) ([]set.Outcome[*report.Report], error) {
	p := o.progress()
	defer p.end()
	return s.StartInPods(ctx, o.printing(p))
}

// newPod makes the hidden command that the pods of replicas run.
func newPod(o *options) *cobra.Command {
	c := &cobra.Command{Use: "pod", Short: "What runs in the pods of replicas", Hidden: true}
	c.AddCommand(&cobra.Command{
		Use: "wait", Short: "Be the first process of a pod, until it is stopped", Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return exitCode(pods.Wait(c.Context())) },
	})
	c.AddCommand(newPodLink(o), newPodKeep(o))
	return c
}
