package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

func newCollectK8s(o *options) *cobra.Command {
	var opts k8s.Options
	var output string
	var debug bool
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{}
	c := &cobra.Command{
		Use: "collect-k8s NODE...", Short: "Collect OVS and OVN data from nodes of a Kubernetes cluster",
		Long: "Collect OVS and OVN data from nodes of a live Kubernetes or OpenShift cluster, by commands in the pods\n" +
			"that run OVS and OVN there. Which pods, is found out: " + strings.Join(k8s.LayoutNames(), ", ") + ".\n\n" +
			"One NODE is collected into the working directory; several, each into one of its own below it.\n" +
			"Exit code 3 says that something there could not be read, or that some nodes could not.",
		Example: "  ovs-offline collect-k8s ovn-worker\n" +
			"  ovs-offline collect-k8s -o worker-0 --context production\n" +
			"  ovs-offline -w nodes collect-k8s --all",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			names := nodeNames(c.Context(), rules, overrides)
			return slices.DeleteFunc(names, func(name string) bool {
				return !strings.HasPrefix(name, begun) || slices.Contains(args, name) || terminal.Escape(name) != name
			}), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			opts.Nodes = args
			if given := countTrue(len(args) > 0, opts.All, opts.Selector != ""); given != 1 {
				return fmt.Errorf("%w: %s takes NODE..., or --all, or --selector; see %s --help", errUsage, c.Name(), c.CommandPath())
			}
			config, err := kubeconfig(rules, overrides, debug)
			if err != nil {
				return err
			}
			opts.Stall, opts.Namespace = config.Timeout, overrides.Context.Namespace
			return o.collectK8s(c, config, opts, output)
		},
	}
	f := c.Flags()
	f.BoolVarP(&opts.OpenShift, "openshift", "o", false, "an OpenShift cluster: look for OpenShift's own OVN only")
	f.BoolVar(&opts.All, "all", false, "all nodes that run OVS")
	f.StringVarP(&opts.Selector, "selector", "l", "", "the nodes with these labels (for example node-role.kubernetes.io/worker=)")
	f.StringVar(&opts.Layout, "layout", "", "don't find out how OVS and OVN are deployed: "+strings.Join(k8s.LayoutNames(), ", "))
	f.BoolVar(&opts.Force, "force", false, "replace data of the same kind that the workdirs hold")
	f.Int64Var(&opts.MaxBytes, "max-size", archive.Default().Bytes, "give up on a node of which more comes, in bytes")
	f.BoolVarP(&debug, "debug", "d", false, "log each request to the API server, and its warnings")
	outputFlagP(c, &output, "")
	kubectlFlags(f, rules, overrides)
	_ = c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(k8s.LayoutNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// completing is how long a shell waits for the names of nodes.
const completing = 3 * time.Second

// nodeNames are the cluster's nodes; none if it doesn't say: who presses a key
// wants no error.
func nodeNames(ctx context.Context, rules *clientcmd.ClientConfigLoadingRules, overrides *clientcmd.ConfigOverrides) []string {
	config, err := kubeconfig(rules, overrides, false)
	if err != nil {
		return nil
	}
	config.Timeout = completing
	cluster, err := k8s.Connect(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completing)
	defer cancel()
	names, err := cluster.Nodes(ctx, "")
	if err != nil {
		return nil
	}
	return names
}

// kubectlFlags are kubectl's, for reaching a cluster.
func kubectlFlags(f *pflag.FlagSet, rules *clientcmd.ClientConfigLoadingRules, overrides *clientcmd.ConfigOverrides) {
	f.StringVar(&rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file (or KUBECONFIG)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.ContextOverrideFlags.Namespace.Description = "where OVS and OVN are, if not where they usually are"
	names.Timeout.Description = "how long one request, or a stream from which nothing comes, may take (a stream: 1m if not given)"
	clientcmd.BindOverrideFlags(overrides, f, names)
}

func countTrue(list ...bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// kubeconfig reads the configuration as kubectl does; where there is none, that
// of the pod we run in.
func kubeconfig(rules *clientcmd.ClientConfigLoadingRules, overrides *clientcmd.ConfigOverrides, debug bool) (*rest.Config, error) {
	setKlog(debug)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured: set KUBECONFIG, or give --kubeconfig, or --server")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "ovs-offline/" + version
	config.QPS, config.Burst = 50, 100 // ten nodes at once ask in bursts
	if !debug {
		config.WarningHandler = rest.NoWarnings{}
	}
	return config, nil
}

// setKlog keeps what client-go logs to itself, unless somebody wants to see it.
func setKlog(debug bool) {
	if !debug {
		klog.SetLogger(logr.Discard())
		return
	}
	f := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(f)
	_ = f.Set("v", "6") // its own flag and a number: it can't fail
}

func (o *options) collectK8s(c *cobra.Command, config *rest.Config, opts k8s.Options, output string) error {
	cluster, err := k8s.Connect(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	p := o.progress()
	opts.Report = k8sProgress(p, opts.Several())
	results, err := k8s.Collect(c.Context(), cluster, o.workdir, opts)
	p.end()
	if errors.Is(err, k8s.ErrUsage) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if err := o.emit(output, k8sReport(cluster, results), func() { o.printK8s(results, opts.Several()) }); err != nil {
		return err
	}
	return o.k8sOutcome(results)
}

// k8sProgress says what is going on: of one node a line that redraws, of
// several a line a node, when it ends.
func k8sProgress(p *progress, several bool) func(node, what string, bytes int64) {
	var mu sync.Mutex
	begun := time.Now()
	return func(node, what string, bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		if several && what != "collecting" {
			p.end()
			fmt.Fprintf(p.o.Err, "%s: %s, %.1f MiB, after %.1f s\n", terminal.Escape(node), what, mebi(bytes), time.Since(begun).Seconds())
			return
		}
		p.say("%s: %s, %.1f MiB", node, what, mebi(bytes))
	}
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (o *options) printK8s(results []k8s.Result, several bool) {
	if several {
		o.printNodes(results)
	}
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		headline(o.Out, "Offline OVS Debugging: data collected and stored in "+r.Workdir)
		for _, c := range r.Collections {
			o.printCollection(c)
		}
	}
}

// printNodes sums up many nodes.
func (o *options) printNodes(results []k8s.Result) {
	t := newTable(o.Out, "node", "layout", "ovs", "ovn", "bridges", "files", "size", "collected")
	for _, r := range results {
		s := summary(r)
		t.AppendRow(table.Row{terminal.Escape(r.Node), r.Layout, terminal.Escape(s.OVS), terminal.Escape(s.OVN), s.Bridges, s.Files, fmt.Sprintf("%.1f MiB", mebi(s.Size)), s.Outcome})
	}
	t.Render()
	fmt.Fprintln(o.Out)
}

// k8sNode is a node in the JSON report: what collect tells of one, and more.
type k8sNode struct {
	Name    string   `json:"name"`
	Workdir string   `json:"workdir"`
	Layout  string   `json:"layout,omitempty"`
	Outcome string   `json:"outcome"` // whole, incomplete, failed
	OVS     string   `json:"ovs_version,omitempty"`
	OVN     string   `json:"ovn_version,omitempty"`
	Bridges int      `json:"bridges"`
	Files   int      `json:"files"`
	Size    int64    `json:"size"`
	Lost    []string `json:"lost"`
	Error   string   `json:"error,omitempty"`

	Collections []workdir.Collection `json:"collections"`
}

func summary(r k8s.Result) k8sNode {
	n := k8sNode{Name: r.Node, Workdir: r.Workdir, Layout: r.Layout, Outcome: "whole", Lost: []string{}, Collections: append([]workdir.Collection{}, r.Collections...)}
	for _, c := range r.Collections {
		n.Bridges += len(c.Bridges)
		n.Files += len(c.Files)
		n.Lost = append(n.Lost, c.Lost...)
		for _, f := range c.Files {
			n.Size += f.Size
		}
		n.OVS, n.OVN = n.OVS+c.OVSVersion, c.OVNVersion
	}
	if len(n.Lost) > 0 {
		n.Outcome = "incomplete"
	}
	if r.Err != nil {
		n.Outcome, n.Error = "failed", r.Err.Error()
	}
	return n
}

// k8sReport is the JSON report, of one node as of many.
func k8sReport(cluster *k8s.Cluster, results []k8s.Result) any {
	nodes := make([]k8sNode, 0, len(results))
	for _, r := range results {
		nodes = append(nodes, summary(r))
	}
	return struct {
		Cluster string    `json:"cluster"`
		Nodes   []k8sNode `json:"nodes"`
	}{cluster.Name, nodes}
}

// k8sOutcome turns what befell the nodes into the command's outcome.
func (o *options) k8sOutcome(results []k8s.Result) error {
	failed, lost := 0, false
	for _, r := range results {
		lost = lost || summary(r).Outcome == "incomplete"
		if r.Err == nil {
			continue
		}
		failed++
		if len(results) > 1 {
			fmt.Fprintf(o.Err, "ovs-offline: %s: %s\n", terminal.Escape(r.Node), terminal.Escape(r.Err.Error()))
		}
	}
	switch {
	case len(results) == 1 && failed == 1 && errors.Is(results[0].Err, k8s.ErrUsage):
		return fmt.Errorf("%w: %w", errUsage, results[0].Err)
	case len(results) == 1 && failed == 1:
		return results[0].Err
	case failed == len(results):
		return errors.New("no node could be collected")
	case failed > 0 || lost:
		return errIncomplete
	}
	return nil
}
