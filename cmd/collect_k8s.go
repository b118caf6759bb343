package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

type collectK8sOptions struct {
	*options
	k8s.Options
	kubeconfig *kubeconfig
}

func newCollectK8s(shared *options) *cobra.Command {
	o := &collectK8sOptions{options: shared, kubeconfig: newKubeconfig()}
	layouts := strings.Join(k8s.LayoutNames(), ", ")
	c := &cobra.Command{
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
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			names := o.kubeconfig.nodes(c.Context())
			return slices.DeleteFunc(names, func(name string) bool {
				return !strings.HasPrefix(name, prefix) || slices.Contains(args, name) || terminal.Escape(name) != name
			}), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	f := c.Flags()
	f.BoolVar(&o.OpenShift, "openshift", false, "an OpenShift cluster: look only for OpenShift's own OVN")
	f.BoolVar(&o.All, "all", false, "collect all nodes that run OVS")
	f.StringVarP(&o.Selector, "selector", "l", "", "collect the nodes with these labels (for example node-role.kubernetes.io/worker=)")
	f.StringVar(&o.Layout, "layout", "", "how OVS and OVN are deployed, instead of detecting it: "+layouts)
	f.BoolVar(&o.Force, "force", false, "replace data of the same kind in the working directories")
	f.Int64Var(&o.MaxBytes, "max-size", archive.Default().Bytes, "give up on a node that sends more, in bytes")
	f.BoolVarP(&o.verbose, "debug", "d", false, "the same as --verbose")
	_ = f.MarkHidden("debug")
	o.outputFlag(c)
	o.kubeconfig.addFlags(f)
	_ = c.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(k8s.LayoutNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *collectK8sOptions) run(c *cobra.Command, nodes []string) error {
	ways := slices.DeleteFunc([]bool{len(nodes) > 0, o.All, o.Selector != ""}, func(given bool) bool { return !given })
	if len(ways) != 1 {
		return usageError(c, fmt.Errorf("%s takes NODE..., or --all, or --selector", c.Name()))
	}
	ctx := c.Context()
	config, err := o.kubeconfig.Load(ctx)
	if err != nil {
		return err
	}
	cluster, err := k8s.Connect(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	o.Nodes, o.Stall, o.Namespace = nodes, config.Timeout, o.kubeconfig.namespace()
	p := o.progress()
	o.Report, o.Waiting = k8sProgress(o.Err, p, o.Several())
	results, err := k8s.Collect(ctx, cluster, o.workdir, o.Options)
	p.end()
	if err != nil {
		return asUsage(err)
	}
	out := k8sOutput{Cluster: cluster.Name, Nodes: []k8sNode{}}
	for _, r := range results {
		out.Nodes = append(out.Nodes, newK8sNode(r))
	}
	if err := o.emit(out, func() { o.printNodes(out.Nodes) }); err != nil {
		return err
	}
	return o.outcome(results)
}

// asUsage converts a usage error of package k8s to one of this package.
func asUsage(err error) error {
	if errors.Is(err, k8s.ErrUsage) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// k8sProgress returns functions that print the progress of a collection: report a line
// that is redrawn, or for several nodes also a line for each node that ends; waiting a
// line for each pause.
func k8sProgress(out io.Writer, p *progress, several bool) (report func(node, what string, bytes int64), waiting func(node string, pause time.Duration, cause error)) {
	var mu sync.Mutex
	began := time.Now()
	report = func(node, what string, bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		if several && what != "collecting" {
			p.end()
			fmt.Fprintf(out, "%s: %s, %.1f MiB, after %.1f s\n", terminal.Escape(node), what, mebi(bytes), time.Since(began).Seconds())
			return
		}
		p.print("%s: %s, %.1f MiB", node, what, mebi(bytes))
	}
	waiting = func(node string, pause time.Duration, cause error) {
		mu.Lock()
		defer mu.Unlock()
		p.end()
		if node != "" {
			node += ": "
		}
		fmt.Fprintf(out, "%strying again in %s: %s\n", terminal.Escape(node), pause, terminal.Escape(cause.Error()))
	}
	return report, waiting
}

// k8sOutput is the JSON output of collect-k8s, for one node or several.
type k8sOutput struct {
	Cluster string    `json:"cluster"`
	Nodes   []k8sNode `json:"nodes"`
}

// The outcomes of a node.
const (
	outcomeWhole      = "whole"
	outcomeIncomplete = "incomplete"
	outcomeFailed     = "failed"
)

// k8sNode is the JSON output for one node: the output of collect with more fields.
type k8sNode struct {
	collectedNode
	Layout  string   `json:"layout,omitempty"`
	Outcome string   `json:"outcome"`
	OVS     string   `json:"ovs_version,omitempty"`
	OVN     string   `json:"ovn_version,omitempty"`
	Bridges int      `json:"bridges"`
	Files   int      `json:"files"`
	Size    int64    `json:"size"`
	Lost    []string `json:"lost"`
	Error   string   `json:"error,omitempty"`
}

func newK8sNode(r k8s.Result) k8sNode {
	n := k8sNode{collectedNode: collectedNode{Name: r.Node, Workdir: r.Workdir, Collections: append([]workdir.Collection{}, r.Collections...)}, Layout: r.Layout, Outcome: outcomeWhole, Lost: []string{}}
	for _, c := range r.Collections {
		n.Bridges += len(c.Bridges)
		n.Files += len(c.Files)
		n.Lost = append(n.Lost, c.Lost...)
		for _, f := range c.Files {
			n.Size += f.Size
		}
		n.OVS, n.OVN = cmp.Or(n.OVS, c.OVSVersion), cmp.Or(n.OVN, c.OVNVersion)
	}
	if len(n.Lost) > 0 {
		n.Outcome = outcomeIncomplete
	}
	if r.Err != nil {
		n.Outcome, n.Error = outcomeFailed, r.Err.Error()
	}
	return n
}

// printNodes prints what was collected, and for several nodes a summary first.
func (o *collectK8sOptions) printNodes(nodes []k8sNode) {
	if o.Several() {
		t := o.newTable("node", "layout", "ovs", "ovn", "bridges", "files", "size", "collected")
		for _, n := range nodes {
			t.AppendRow(table.Row{terminal.Escape(n.Name), n.Layout, terminal.Escape(n.OVS), terminal.Escape(n.OVN), n.Bridges, n.Files, fmt.Sprintf("%.1f MiB", mebi(n.Size)), n.Outcome})
		}
		t.Render()
		fmt.Fprintln(o.Out)
	}
	for _, n := range nodes {
		if n.Outcome != outcomeFailed {
			o.headline("Offline OVS Debugging: data collected and stored in %s", n.Workdir)
			o.printCollections(n.Collections)
		}
	}
}

// outcome returns the command's error: the error of a single node, or for several nodes
// errIncomplete if some could be collected.
func (o *collectK8sOptions) outcome(results []k8s.Result) error {
	if len(results) == 1 && results[0].Err != nil {
		return asUsage(results[0].Err)
	}
	failed, lost := 0, false
	for _, r := range results {
		lost = lost || hasLost(r.Collections)
		if r.Err != nil {
			failed++
			fmt.Fprintf(o.Err, "ovs-offline: %s: %s\n", terminal.Escape(r.Node), terminal.Escape(r.Err.Error()))
		}
	}
	if failed == len(results) {
		return errors.New("no node could be collected")
	}
	return incompleteIf(failed > 0 || lost)
}
