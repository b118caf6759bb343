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

	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/set"
)

func newList(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List your running replicas on this host", Args: exactArgs(),
		Long: "List your running replicas on this host, in all runtimes; with -w and the folder of\n" +
			"several nodes' working directories, only the replicas of these.",
		Example: "  ovs-offline list\n  ovs-offline list -o json | jq -r '.[].workdir'",
		RunE: func(c *cobra.Command, args []string) error {
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
	return c
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
