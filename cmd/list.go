package cmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
)

func newList(o *options) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the replicas that run on this host", Args: exactly(),
		Long:    "List the replicas that run on this host and are yours, whatever they run in.",
		Example: "  ovs-offline list\n  ovs-offline list -o json | jq -r '.[].workdir'",
		RunE: func(_ *cobra.Command, _ []string) error {
			list, err := replica.List()
			if err != nil {
				return err
			}
			return o.emit(format, list, func() { o.printList(list) })
		},
	}
	outputFlag(c, &format)
	return c
}

func (o *options) printList(list []replica.Listed) {
	if len(list) == 0 {
		fmt.Fprintln(o.Out, "No replica runs.")
		return
	}
	t := newTable(o.Out, "workdir", "node", "runtime", "daemons", "started")
	for _, l := range list {
		t.AppendRow(table.Row{terminal.Escape(l.Workdir), terminal.Escape(strings.Join(l.Hosts, ", ")), l.Runtime, l.Daemons, when(l.Started)})
	}
	t.Render()
}

// when is a time for people: the clock of their place.
func when(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Local().Format(time.DateTime)
}
