package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/temporary"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

// inspectOptions are the flags of inspect, and of collect.
type inspectOptions struct {
	*options
	nodes  []string
	limits archive.Limits
}

func newInspect(shared *options) *cobra.Command {
	o := &inspectOptions{options: shared}
	c := &cobra.Command{
		Use: "inspect PATH...", Short: "Show what files contain, and what a replica of them could answer", Args: cobra.MinimumNArgs(1),
		Long: "Show what files contain (sos reports, must-gathers, databases, ovs-save's output, dumps,\n" +
			"archives and folders of these), and what a replica of them could and could not answer.\n" +
			"Nothing is collected.",
		Example: "  ovs-offline inspect must-gather.tar.gz sosreport-*.tar.xz",
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.addFlags(c)
	return c
}

func (o *inspectOptions) addFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.nodes, "node", nil, "only the node with this name (can be repeated)")
	limitFlags(c, &o.limits)
	o.outputFlag(c)
}

// inspection is the JSON output of inspect.
type inspection struct {
	Inputs []collect.Input       `json:"inputs"`
	Nodes  []collect.Description `json:"nodes"`
	Lost   []string              `json:"lost"`
	// Remarks are findings about several nodes or inputs.
	Remarks []string `json:"remarks,omitempty"`
}

func (o *inspectOptions) run(ctx context.Context, paths []string) error {
	spool, remove, err := temporary.Folder("ovs-offline-inspect-")
	if err != nil {
		return err
	}
	defer remove()
	p := o.progress()
	found, plans, err := collect.Inspect(ctx, collect.Files{Paths: paths, Limits: o.limits, Progress: p.bytes}, spool, o.nodes)
	p.end()
	if err != nil {
		return explain(err, strings.Join(paths, " "))
	}
	out := inspection{Inputs: found.Inputs, Nodes: []collect.Description{}, Lost: append([]string{}, found.Lost...), Remarks: found.Remarks}
	lost := len(found.Lost) > 0
	for _, plan := range plans {
		d := plan.Describe()
		out.Nodes = append(out.Nodes, d)
		lost = lost || len(d.Lost) > 0 || d.OVN.Lacking
	}
	if err := o.emit(out, func() { o.printInspection(out) }); err != nil {
		return err
	}
	return incompleteIf(lost)
}

func (o *IO) printInspection(seen inspection) {
	o.printInputs(seen.Inputs)
	for _, n := range seen.Nodes {
		fmt.Fprintln(o.Out)
		o.headline("Node %s", terminal.Escape(n.Name))
		o.printVersions(n)
		o.printDatabases(n)
		o.printOVN(n.OVN, len(seen.Nodes) > 1, n.Host)
		o.printDumps(n)
		o.printList("Recorded: ", ", ", n.Recorded)
		o.printList("A replica can answer:\n  - ", "\n  - ", n.Can)
		o.printList("A replica can't answer:\n  - ", "\n  - ", n.Cannot)
		o.warnEach(n.Name+": ", n.Remarks)
		o.warnEach(n.Name+": could not be read: ", n.Lost)
	}
	o.warnEach("", seen.Remarks)
	o.warnEach("could not be read: ", seen.Lost)
}

// printVersions prints the versions of the programs that the node has, or has data of.
func (o *IO) printVersions(n collect.Description) {
	ovs, ovn := len(n.Bridges) > 0, false
	for _, db := range n.Databases {
		ovs = ovs || db.Kind == workdir.OVS
		ovn = ovn || db.Kind == workdir.NB || db.Kind == workdir.SB
	}
	for _, v := range []struct {
		program, version string
		has              bool
	}{{"Open vSwitch", n.OVSVersion, ovs}, {"OVN", n.OVNVersion, ovn}} {
		switch {
		case v.version != "":
			fmt.Fprintf(o.Out, "%s %s\n", v.program, terminal.Escape(v.version))
		case v.has:
			fmt.Fprintf(o.Out, "%s of unknown version\n", v.program)
		}
	}
}

func (o *IO) printInputs(list []collect.Input) {
	for _, in := range list {
		fmt.Fprintf(o.Out, "%s: %s\n", terminal.Escape(in.Path), terminal.Escape(strings.Join(in.Kinds, ", ")))
	}
}

func (o *IO) printList(title, separator string, list []string) {
	if len(list) == 0 {
		return
	}
	escaped := make([]string, len(list))
	for i := range list {
		escaped[i] = terminal.Escape(list[i])
	}
	fmt.Fprintln(o.Out, title+strings.Join(escaped, separator))
}

func (o *IO) printDatabases(n collect.Description) {
	if len(n.Databases) == 0 {
		return
	}
	t := o.newTable("database", "form", "schema", "size", "records", "health", "from")
	for _, db := range n.Databases {
		health := "sound"
		if db.Damaged > 0 {
			health = fmt.Sprintf("%d damaged records", db.Damaged)
		}
		if !db.Used {
			health += ", not used"
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

// printDumps prints each dump that a replica would load, and the other OpenFlow
// versions in which the source has it.
func (o *IO) printDumps(n collect.Description) {
	t := o.newTable("bridge", "dump", "OpenFlow", "entries", "unusable lines", "also in", "from")
	for _, b := range n.Bridges {
		for _, command := range recording.Dumps() {
			dump := command.Dump
			var also []string
			var used collect.DumpDescription
			for _, d := range b.Dumps[dump] {
				if d.Used {
					used = d
				} else {
					also = append(also, shortVersion(d.OpenFlow))
				}
			}
			if used.Used {
				t.AppendRow(table.Row{terminal.Escape(b.Name), dump, shortVersion(used.OpenFlow), used.Entries, used.Lost, strings.Join(also, " "), terminal.Escape(used.Origin)})
			}
		}
	}
	if t.Length() > 0 {
		t.Render()
		fmt.Fprintln(o.Out)
	}
}

// shortVersion shortens "OpenFlow13" to "1.3".
func shortVersion(openflow string) string {
	digits := strings.TrimPrefix(openflow, "OpenFlow")
	if len(digits) != 2 {
		return openflow
	}
	return digits[:1] + "." + digits[1:]
}
