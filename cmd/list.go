package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/pods"
	"ovs-offline/replica"
	"ovs-offline/set"
)

func newList(o *options) *cobra.Command {
	kubeconfig, all := newKubeconfig(), false
	var podFlags []string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List your running replicas on this host, or those in a cluster", Args: exactArgs(),
		Long: "List your running replicas on this host, in all runtimes; with -w and the folder of\n" +
			"several nodes' working directories, only the replicas of these.\n\n" +
			"With --runtime kubernetes, list the sets of replicas in a namespace of a cluster, whoever started\n" +
			"them; \"stop --runtime kubernetes SET\" deletes one.",
		Example: "  ovs-offline list\n  ovs-offline list -o json | jq -r '.[].workdir'\n  ovs-offline list --runtime kubernetes --context lab --namespace debug",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.checkPodFlags(c, podFlags); err != nil {
				return err
			}
			if o.inCluster {
				return o.listInCluster(c.Context(), kubeconfig, all)
			}
			if !c.Flags().Changed("workdir") && !c.Flags().Changed("node") {
				return o.list(func(replica.Listed) bool { return true })
			}
			return o.oneOrSet(func(*cobra.Command, []string) error {
				return o.list(func(replica.Listed) bool { return true })
			}, o.listSet)(c, args)
		},
	}
	o.nodeFlag(c)
	o.outputFlag(c)
	podFlags = addedFlags(c, func() {
		kubeconfig.addPlaceFlags(c.Flags())
		c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "with --runtime kubernetes: list the replicas of all namespaces")
	})
	return c
}

// listInCluster prints the sets of replicas in a cluster.
func (o *options) listInCluster(ctx context.Context, kubeconfig *kubeconfig, allNamespaces bool) error {
	list, err := pods.List(ctx, &kubeconfig.Config, allNamespaces)
	if err != nil {
		return err
	}
	return o.emit(list, func() {
		if len(list) == 0 {
			fmt.Fprintln(o.Out, "No replica is in the cluster.")
			return
		}
		t := o.newTable("set", "namespace", "nodes", "pods ready", "started", "ends", "from", "images", "problem")
		for _, l := range list {
			t.AppendRow(table.Row{terminal.Escape(l.Set), terminal.Escape(l.Namespace), terminal.Escape(recording.FirstNames(l.Nodes)), fmt.Sprintf("%d of %d", l.Ready, l.Pods),
				localTime(l.Started), localTime(l.Ends), terminal.Escape(l.Host + ":" + l.Path), terminal.Escape(strings.Join(l.Images, ", ")), terminal.Escape(l.Problem)})
		}
		t.Render()
	})
}

// list prints the running replicas for which wanted is true.
func (o *options) list(wanted func(replica.Listed) bool) error {
	list, err := replica.List()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(l replica.Listed) bool { return !wanted(l) })
	return o.emit(list, func() { o.printList(list) })
}

// listSet prints the running replicas of a set.
func (o *options) listSet(_ context.Context, s *set.Set, _ []string) error {
	return o.list(func(l replica.Listed) bool {
		return slices.ContainsFunc(s.Nodes(), func(n *set.Node) bool { return sameFolder(filepath.Join(s.Folder(), n.Name), l.Workdir) })
	})
}

// sameFolder reports whether two paths lead to one folder.
func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (o *options) printList(list []replica.Listed) {
	if len(list) == 0 {
		fmt.Fprintln(o.Out, "No replica is running.")
		return
	}
	t := o.newTable("workdir", "node", "runtime", "daemons", "started", "recorded", "running", "from")
	for _, l := range list {
		from := ""
		if len(l.Sources) > 0 {
			from = filepath.Base(l.Sources[0])
		}
		t.AppendRow(table.Row{terminal.Escape(l.Workdir), terminal.Escape(strings.Join(l.Hosts, ", ")), l.Runtime, l.Daemons, cmp.Or(localTime(l.Started), "unknown"), versionsText(l.Recorded), versionsText(l.Running), terminal.Escape(from)})
	}
	t.Render()
}

// localTime formats a time in the local time zone; the zero time is "".
func localTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
