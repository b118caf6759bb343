package cmd

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
)

func newList(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List your running replicas on this host", Args: exactArgs(),
		Long:    "List your running replicas on this host, in all runtimes.",
		Example: "  ovs-offline list\n  ovs-offline list -o json | jq -r '.[].workdir'",
		RunE: func(_ *cobra.Command, _ []string) error {
			list, err := replica.List()
			if err != nil {
				return err
			}
			return o.emit(list, func() { o.printList(list) })
		},
	}
	o.outputFlag(c)
	return c
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
