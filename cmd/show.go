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
	"ovs-offline/set"
)

func newShow(o *options) *cobra.Command {
	c := &cobra.Command{
		Use: "show", Short: "Show the sockets and ports of the running replica", Args: exactArgs(),
		Long: "Show the sockets of the running replica, with the command lines that use them, the recorded\n" +
			"and the running versions, and the number of each port in the live node's datapath and in the\n" +
			"replica's.",
		Example: "  ovs-offline show\n  ovs-offline show -o json | jq .ports",
		RunE:    o.workdirOrSet(o.show, o.showSet),
	}
	o.nodeFlag(c)
	o.outputFlag(c)
	return c
}

// shown is what show prints of a replica.
type shown struct {
	Ports    []report.PortRow `json:"ports"`
	Recorded versions.Pair    `json:"recorded"`
	Running  versions.Pair    `json:"running"`
	Sockets  replica.Sockets  `json:"sockets"`
}

func readShown(ctx context.Context, n *set.Node, wd *workdir.Dir) (shown, error) {
	state, err := n.Running(ctx, wd)
	if err != nil {
		return shown{}, err
	}
	sockets, err := readSockets(ctx, wd, state)
	if err != nil {
		return shown{}, err
	}
	r, err := replica.Report(wd)
	if err != nil {
		return shown{}, err
	}
	return shown{r.Ports, r.Recorded, r.Running, sockets}, nil
}

// readSockets returns the sockets of a running replica: of one in a pod, those in the pod.
func readSockets(ctx context.Context, wd *workdir.Dir, state replica.State) (replica.Sockets, error) {
	if state.Pod == nil {
		return replica.Show(wd)
	}
	var inPod struct {
		Sockets replica.Sockets `json:"sockets"`
	}
	if err := set.DocumentInPod(ctx, wd, &inPod, "show"); err != nil {
		return replica.Sockets{}, err
	}
	return inPod.Sockets.InPod(wd, *state.Pod), nil
}

func (o *options) show(ctx context.Context, wd *workdir.Dir, _ []string) error {
	s, err := readShown(ctx, o.node(), wd)
	if err != nil {
		return err
	}
	return o.emit(s, func() { o.printShown(s) })
}

// showSet prints the sockets and ports of each node of a set.
func (o *options) showSet(ctx context.Context, s *set.Set, _ []string) error {
	outcomes := set.Each(ctx, s, readShown)
	err := o.emit(documentOf(s, outcomes), func() { eachNode(&o.IO, values(outcomes), o.printShown) })
	return worst(append(failures(outcomes), err)...)
}

func (o *options) printShown(s shown) {
	s.Sockets.Print(o.Out, shellWord)
	fmt.Fprintf(o.Out, "Recorded: %s; running: %s\n", versionsText(s.Recorded), versionsText(s.Running))
	s.Sockets.PrintNotes(o.Out, shellWord)
	fmt.Fprintln(o.Out)
	o.printPorts(s.Ports)
}

// versionsText returns versions for a line of text.
func versionsText(v versions.Pair) string { return cmp.Or(terminal.Escape(v.String()), "unknown") }

func (o *options) printPorts(ports []report.PortRow) {
	if len(ports) == 0 {
		return
	}
	t := o.newTable("bridge", "port", "ofport", "live datapath port", "replica datapath port")
	for _, p := range ports {
		t.AppendRow(table.Row{terminal.Escape(p.Bridge), terminal.Escape(p.Port), p.OfPort, terminal.Escape(p.Live), terminal.Escape(p.Replica)})
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
