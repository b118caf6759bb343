package cmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/set"
)

type listOptions struct {
	*options
	kubeconfig    *kubeconfig
	allNamespaces bool
}

func newList(shared *options) *cobra.Command {
	o := &listOptions{options: shared, kubeconfig: newKubeconfig()}
	var podFlags []string
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List your running replicas on this host, or all replicas in a namespace of a cluster", Args: exactArgs(),
		Long: "List your running replicas on this host, in all runtimes; with -w and the folder of\n" +
			"several nodes' working directories, only the replicas of these.\n\n" +
			"With --runtime kubernetes, list the sets of replicas in a namespace of a cluster, including the\n" +
			"sets that others started; \"stop --runtime kubernetes SET\" deletes one.",
		Example: "  ovs-offline list\n  ovs-offline list -o json | jq -r '.[].workdir'\n  ovs-offline list --runtime kubernetes --context lab --namespace debug",
		RunE: func(command *cobra.Command, args []string) error {
			if err := o.checkPodFlags(command, podFlags); err != nil {
				return err
			}
			if o.inCluster {
				return o.listInCluster(command.Context())
			}
			if !command.Flags().Changed("workdir") && !command.Flags().Changed("node") {
				return o.listReplicas(func(replica.Listed) bool { return true })
			}
			return o.withNodes(o.listSet)(command, args)
		},
	}
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	podFlags = addedFlags(command, func() {
		o.kubeconfig.addPlaceFlags(command.Flags())
		command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "with --runtime kubernetes: list the replicas of all namespaces")
	})
	return command
}

// listInCluster prints the sets of replicas in a cluster.
func (o *listOptions) listInCluster(ctx context.Context) error {
	list, err := pods.List(ctx, &o.kubeconfig.Config, o.allNamespaces)
	if err != nil {
		return err
	}
	return o.emit(list, func(page *show.Page) { pods.PrintList(page, list) })
}

// listReplicas prints the running replicas for which wanted is true.
func (o *listOptions) listReplicas(wanted func(replica.Listed) bool) error {
	list, err := replica.List()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(listed replica.Listed) bool { return !wanted(listed) })
	return o.emit(list, func(page *show.Page) { replica.PrintList(page, list) })
}

// listSet prints the running replicas of a folder of several nodes, or all for a workdir alone.
func (o *listOptions) listSet(_ context.Context, selected *set.Set, _ []string) error {
	return o.listReplicas(func(listed replica.Listed) bool { return selected.Alone() || selected.Has(listed.Workdir) })
}
