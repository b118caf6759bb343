package cmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
)

func newInspect(o *options) *cobra.Command {
	var nodes []string
	var limits archive.Limits
	var output string
	c := &cobra.Command{
		Use: "inspect PATH...", Short: "Say what files hold, and what a replica of them could answer", Args: paths,
		Long: "Say what files hold (sos reports, must-gathers, databases, ovs-save's output, dumps, archives\n" +
			"and folders of such), and what a replica of them could and could not answer.\n" +
			"Nothing is collected.",
		Example: "  ovs-offline inspect must-gather.tar.gz sosreport-*.tar.xz",
		RunE: func(c *cobra.Command, args []string) error {
			return o.inspect(c.Context(), args, nodes, limits, output)
		},
	}
	limitFlags(c, &limits)
	c.Flags().StringArrayVar(&nodes, "node", nil, "only the node of that name (can be repeated)")
	outputFlag(c, &output)
	return c
}

// paths takes one argument or more.
func paths(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: %s takes the paths of files or folders; see %s --help", errUsage, c.Name(), c.CommandPath())
	}
	return nil
}

// inspection is the JSON output of inspect.
type inspection struct {
	Inputs []collect.Input       `json:"inputs"`
	Nodes  []collect.Description `json:"nodes"`
	Lost   []string              `json:"lost"`
}

func (o *options) inspect(ctx context.Context, args, nodes []string, limits archive.Limits, output string) error {
	spool, err := os.MkdirTemp("", "ovs-offline-inspect-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(spool)
	p := o.progress()
	source := collect.Files{Paths: args, Limits: limits, Progress: p.bytes}
	found, plans, err := collect.Inspect(ctx, source, spool, nodes)
	p.end()
	if err != nil {
		return explain(err, strings.Join(args, " "))
	}
	seen := inspection{Inputs: found.Inputs, Nodes: []collect.Description{}, Lost: append([]string{}, found.Lost...)}
	lost := len(found.Lost) > 0
	for _, plan := range plans {
		d := plan.Describe()
		seen.Nodes = append(seen.Nodes, d)
		lost = lost || len(d.Lost) > 0
	}
	err = o.emit(output, seen, func() { o.printInspection(seen) })
	if err == nil && lost {
		return errIncomplete
	}
	return err
}

func (o *options) printInspection(seen inspection) {
	for _, in := range seen.Inputs {
		fmt.Fprintf(o.Out, "%s: %s\n", terminal.Escape(in.Path), terminal.Escape(strings.Join(in.Kinds, ", ")))
	}
	for _, n := range seen.Nodes {
		fmt.Fprintln(o.Out)
		headline(o.Out, terminal.Escape("Node "+n.Name))
		for _, v := range []struct{ what, version string }{{"Open vSwitch", n.OVSVersion}, {"OVN", n.OVNVersion}} {
			if v.version != "" {
				fmt.Fprintf(o.Out, "%s %s\n", v.what, terminal.Escape(v.version))
			}
		}
		printDatabases(o, n)
		printDumps(o, n)
		o.printNames("Recorded: ", ", ", n.Recorded)
		o.printNames("A replica can answer:\n  - ", "\n  - ", n.Can)
		o.printNames("A replica can't answer:\n  - ", "\n  - ", n.Cannot)
		for _, r := range n.Remarks {
			o.warn("%s: %s", n.Name, r)
		}
		for _, l := range n.Lost {
			o.warn("%s: could not be read: %s", n.Name, l)
		}
	}
	for _, l := range seen.Lost {
		o.warn("could not be read: %s", l)
	}
}

func (o *options) printNames(head, between string, list []string) {
	if len(list) == 0 {
		return
	}
	safe := make([]string, len(list))
	for i := range list {
		safe[i] = terminal.Escape(list[i])
	}
	fmt.Fprintln(o.Out, head+strings.Join(safe, between))
}

func printDatabases(o *options, n collect.Description) {
	if len(n.Databases) == 0 {
		return
	}
	t := newTable(o.Out, "database", "form", "schema", "size", "records", "health", "from")
	for _, db := range n.Databases {
		health := "sound"
		if db.Damaged > 0 {
			health = fmt.Sprintf("%d damaged records", db.Damaged)
		}
		if !db.Used {
			health += ", not taken"
		}
		form := db.Form
		if db.Gzip {
			form += ", gzip"
		}
		t.AppendRow(table.Row{terminal.Escape(db.Name), form, terminal.Escape(db.Schema), db.Size, db.Records, health, terminal.Escape(db.Origin)})
	}
	t.Render()
	fmt.Fprintln(o.Out)
}

// printDumps has a line for each dump that is restored, and names the versions
// in which it is there as well.
func printDumps(o *options, n collect.Description) {
	t := newTable(o.Out, "bridge", "dump", "OpenFlow", "entries", "unusable lines", "also in", "from")
	rows := 0
	for _, b := range n.Bridges {
		for _, c := range recording.Dumps() {
			dump := c.Dump
			var also []string
			var used collect.DumpDescription
			for _, d := range b.Dumps[dump] {
				if d.Used {
					used = d
				} else {
					also = append(also, ofVersion(d.OpenFlow))
				}
			}
			if used.Used {
				t.AppendRow(table.Row{terminal.Escape(b.Name), dump, ofVersion(used.OpenFlow), used.Entries, used.Lost, strings.Join(also, " "), terminal.Escape(used.Origin)})
				rows++
			}
		}
	}
	if rows > 0 {
		t.Render()
		fmt.Fprintln(o.Out)
	}
}

// ofVersion shortens "OpenFlow13" to "1.3".
func ofVersion(openflow string) string {
	digits := strings.TrimPrefix(openflow, "OpenFlow")
	if len(digits) != 2 {
		return openflow
	}
	return digits[:1] + "." + digits[1:]
}
