package cmd

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
)

func newShow(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "show", Short: "Show the sockets and ports of the running replica", Args: exactArgs(),
		Long: "Show the sockets of the running replica, with the command lines that use them, the recorded\n" +
			"and the running versions, and the number of each port in the live node's datapath and in the\n" +
			"replica's.",
		Example: "  ovs-offline show\n  ovs-offline show -o json | jq .ports",
		RunE:    o.withWorkdir(o.show),
	}
	o.outputFlag(c)
	return c
}

func (o *options) show(ctx context.Context, wd *workdir.Dir, _ []string) error {
	if _, err := o.running(ctx, wd); err != nil {
		return err
	}
	sockets, err := replica.Show(wd)
	if err != nil {
		return err
	}
	r, err := replica.Report(wd)
	if err != nil {
		return err
	}
	return o.emit(map[string]any{"sockets": sockets, "ports": r.Ports, "recorded": r.Recorded, "running": r.Running}, func() {
		sockets.Print(o.Out, shellWord)
		fmt.Fprintf(o.Out, "Recorded: %s; running: %s\n", versionsText(r.Recorded), versionsText(r.Running))
		sockets.PrintNotes(o.Out, shellWord)
		fmt.Fprintln(o.Out)
		o.printPorts(r)
	})
}

// versionsText returns versions for a line of text.
func versionsText(v versions.Pair) string { return cmp.Or(terminal.Escape(v.String()), "unknown") }

func (o *options) printPorts(r *report.Report) {
	if len(r.Ports) == 0 {
		return
	}
	t := o.newTable("bridge", "port", "ofport", "live datapath port", "replica datapath port")
	for _, p := range r.Ports {
		t.AppendRow(table.Row{terminal.Escape(p.Bridge), terminal.Escape(p.Port), p.OfPort, p.Live, p.Replica})
	}
	t.Render()
	fmt.Fprintln(o.Out)
}

// plainWord matches words without a meaning of their own to a shell or a terminal.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+=:,-]+$`)

// shellWord quotes a path, which may contain a bridge's name, for pasting into a shell.
// It escapes control characters; the result no longer names the file then.
func shellWord(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(terminal.Escape(path), "'", `'\''`) + "'"
}
