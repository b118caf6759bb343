package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ovs-offline/replica/choose"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/report"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
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
func (p *podFlags) add(command *cobra.Command) {
	p.kubeconfig = newKubeconfig()
	p.names = addedFlags(command, func() {
		flags := command.Flags()
		p.kubeconfig.addPlaceFlags(flags)
		flags.DurationVar(&p.keep, "keep", 8*time.Hour, "with --runtime kubernetes: how long the cluster keeps the replicas")
		flags.StringToStringVar(&p.selector, "node-selector", nil, "with --runtime kubernetes: run on nodes of the cluster with these labels (for example disktype=ssd)")
		flags.StringArrayVar(&p.tolerations, "toleration", nil, "with --runtime kubernetes: run on nodes with this taint, KEY=VALUE:EFFECT (can be repeated)")
		flags.StringSliceVar(&p.secrets, "image-pull-secret", nil, "with --runtime kubernetes: secret with the credentials of the image's registry (can be repeated)")
	})
	for _, name := range []string{"keep", "node-selector", "toleration", "image-pull-secret"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// addedFlags returns the names of the flags that add adds to a command.
func addedFlags(command *cobra.Command, add func()) (names []string) {
	before := map[string]bool{}
	command.Flags().VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	add()
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !before[flag.Name] {
			names = append(names, flag.Name)
		}
	})
	return names
}

// checkPodFlags returns an error for flags of the command that go with a cluster only.
func (o *options) checkPodFlags(command *cobra.Command, names []string) error {
	if o.inCluster {
		return nil
	}
	for _, name := range names {
		if command.Flags().Changed(name) {
			return usageError(command, fmt.Errorf("--%s is for --runtime %s", name, pods.Name))
		}
	}
	return nil
}

// podOptions returns the options of a start in a cluster, without functions that print;
// nil for a start on this host.
func (o *startOptions) podOptions(command *cobra.Command) (*pods.Options, error) {
	if err := o.checkPodFlags(command, o.pods.names); err != nil || !o.inCluster {
		return nil, err
	}
	if o.image == "" {
		return nil, usageError(command, pods.ErrNoImage)
	}
	if o.pods.keep < time.Second {
		return nil, usageError(command, fmt.Errorf("--keep takes at least one second, not %s", o.pods.keep))
	}
	options := &pods.Options{
		Kubeconfig: &o.pods.kubeconfig.Config, Image: o.image, Versions: o.versions, Keep: o.pods.keep,
		NodeSelector: o.pods.selector, PullSecrets: o.pods.secrets,
	}
	for _, text := range o.pods.tolerations {
		toleration, err := pods.ParseToleration(text)
		if err != nil {
			return nil, usageError(command, fmt.Errorf("--toleration: %w", err))
		}
		options.Tolerations = append(options.Tolerations, toleration)
	}
	return options, nil
}

// startInPods starts the replicas in a cluster.
func (o *startOptions) startInPods(ctx context.Context, selected *set.Set) ([]snapshot.Outcome[*report.Report], error) {
	progress := o.progress()
	defer progress.end()
	options := *o.inPods
	options.Say = func(node, text string) {
		if node != "" {
			text = node + ": " + text
		}
		progress.note("%s", text)
	}
	options.Progress = func(text string) { progress.print("%s", text) }
	return selected.StartInPods(ctx, options)
}

// newPod makes the hidden command that the pods of replicas run.
func newPod(o *options) *cobra.Command {
	command := &cobra.Command{Use: "pod", Short: "What runs in the pods of replicas", Hidden: true}
	command.AddCommand(&cobra.Command{
		Use: "wait", Short: "Be the first process of a pod, until it is stopped", Args: exactArgs(),
		RunE: func(command *cobra.Command, _ []string) error { return exitCode(pods.Wait(command.Context())) },
	})
	command.AddCommand(newPodLink(o))
	return command
}
