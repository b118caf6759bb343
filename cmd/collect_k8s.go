package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/collect/k8s"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

type collectK8sOptions struct {
	*options
	k8s.Options
	kubeconfig *kubeconfig
}

func newCollectK8s(shared *options) *cobra.Command {
	o := &collectK8sOptions{options: shared, kubeconfig: newKubeconfig()}
	layouts := strings.Join(k8s.LayoutNames(), ", ")
	command := &cobra.Command{
		Use: "collect-k8s NODE...", Short: "Collect OVS and OVN data from nodes of a Kubernetes cluster",
		Long: "Collect OVS and OVN data from nodes of a live Kubernetes or OpenShift cluster, by running\n" +
			"commands in the pods of OVS and OVN. The deployment is detected automatically\n" +
			"(" + layouts + ");\n--layout overrides it.\n\n" +
			"A single NODE is collected into the working directory; several nodes each get a\n" +
			"subdirectory, which is a working directory itself.\n\n" +
			"Exit code 3 means that some data could not be read, or some nodes could not be collected.",
		Example: "  ovs-offline collect-k8s ovn-worker\n" +
			"  ovs-offline collect-k8s --openshift worker-0 --context production\n" +
			"  ovs-offline -w nodes collect-k8s --all",
		ValidArgsFunction: func(command *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			names := o.kubeconfig.nodes(command.Context())
			return slices.DeleteFunc(names, func(name string) bool {
				return !strings.HasPrefix(name, prefix) || slices.Contains(args, name) || terminal.Escape(name) != name
			}), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args) },
	}
	flags := command.Flags()
	flags.BoolVar(&o.OpenShift, "openshift", false, "look only for OpenShift's own OVN")
	flags.BoolVar(&o.All, "all", false, "collect all nodes that run OVS")
	flags.StringVarP(&o.Selector, "selector", "l", "", "collect the nodes with these labels (for example node-role.kubernetes.io/worker=)")
	flags.StringVar(&o.Layout, "layout", "", "how OVS and OVN are deployed, instead of detecting it: "+layouts)
	flags.BoolVar(&o.Force, "force", false, forceUsage)
	o.MaxBytes = archive.Default().Bytes
	sizeFlag(command, &o.MaxBytes, "max-size", "give up on a node that sends more")
	flags.BoolVarP(&o.verbose, "debug", "d", false, "the same as --verbose")
	_ = flags.MarkHidden("debug")
	o.outputFlag(command)
	o.kubeconfig.addFlags(flags)
	_ = command.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(k8s.LayoutNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (o *collectK8sOptions) run(command *cobra.Command, nodes []string) error {
	ways := slices.DeleteFunc([]bool{len(nodes) > 0, o.All, o.Selector != ""}, func(given bool) bool { return !given })
	if len(ways) != 1 {
		return usageError(command, fmt.Errorf("%s takes NODE..., or --all, or --selector", command.Name()))
	}
	ctx := command.Context()
	config, err := o.kubeconfig.Load(ctx)
	if err != nil {
		return err
	}
	cluster, err := k8s.Connect(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	o.Nodes, o.Stall, o.Namespace = nodes, config.Timeout, o.kubeconfig.namespace()
	progress := o.progress()
	o.printProgress(progress)
	results, err := k8s.Collect(ctx, cluster, o.workdir, o.Options)
	progress.end()
	if err != nil {
		return err
	}
	out := k8s.NewOutput(cluster.Name, results)
	if err := o.emit(out, func(page *show.Page) { out.Print(page, o.Several()) }); err != nil {
		return err
	}
	return o.outcome(results)
}

// printProgress makes the collection print its progress: a line that is redrawn, or for several
// nodes also a line for each node that ends, and a line for each pause.
func (o *collectK8sOptions) printProgress(printed *progress) {
	began := time.Now()
	o.Report = func(node, what string, bytes int64) {
		if o.Several() && what != "collecting" {
			printed.note("%s: %s, %.1f MiB, after %.1f s", node, what, show.MiB(bytes), time.Since(began).Seconds())
			return
		}
		printed.print("%s: %s, %.1f MiB", node, what, show.MiB(bytes))
	}
	o.Waiting = func(node string, pause time.Duration, cause error) {
		if node != "" {
			node += ": "
		}
		printed.note("%strying again in %s: %s", node, pause, cause.Error())
	}
}

// outcome returns the command's error: the error of a single node, or for several nodes
// errIncomplete if some could be collected.
func (o *collectK8sOptions) outcome(results []k8s.Result) error {
	if len(results) == 1 && results[0].Err != nil {
		return results[0].Err
	}
	failed, lost := 0, false
	for _, result := range results {
		lost = lost || collect.HasLost(result.Collections)
		if result.Err != nil {
			failed++
			fmt.Fprintf(o.Err, "ovs-offline: %s: %s\n", terminal.Escape(result.Node), terminal.Escape(result.Err.Error()))
		}
	}
	if failed == len(results) {
		return errors.New("no node could be collected")
	}
	return incompleteIf(failed > 0 || lost)
}
