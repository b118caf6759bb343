package cmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"ovs-offline/flows"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
	"ovs-offline/trace/answer"
)

type flowsOptions struct {
	*options
	query flows.Query
	sort  string
	match string
	tree  bool

	datapath bool
}

func newFlows(shared *options) *cobra.Command {
	o := &flowsOptions{options: shared}
	c := &cobra.Command{
		Use: "flows [BRIDGE]", Short: "List the recorded flows in names, with their counters",
		Long: "List the recorded flows of a node or of a set, one on a line: the packets, the table and its\n" +
			"stage, the priority, the match with the names of ports, switches and routers, and what the\n" +
			"flow is for: a NetworkPolicy, a security group, a route, a port. No replica needs to run.\n\n" +
			"With --datapath, the recorded flows of the datapath (dpctl/dump-flows) are listed. The running\n" +
			"replica traces a packet of each: a flow whose actions differ was stale, or the OpenFlow tables\n" +
			"changed between the two dumps.\n\n" +
			"Exit code 3: a line of the dump can't be read, or a datapath flow can't be traced.\n" +
			"Exit code 4: a datapath flow is stale.",
		Example: "  ovs-offline flows --acl web --never-hit\n" +
			"  ovs-offline flows br-int --table ls_in_acl_eval --match tcp,tp_dst=443\n" +
			"  ovs-offline -w nodes flows --sort packets --limit 20\n" +
			"  ovs-offline flows --datapath",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("flows takes one BRIDGE, or none for all (%d given)", len(args))
			}
			return nil
		},
		RunE: o.workdirOrSet(func(ctx context.Context, wd *workdir.Dir, args []string) error {
			return o.run(ctx, []flows.Source{{Dir: wd}}, args)
		}, func(ctx context.Context, s *set.Set, args []string) error {
			sources, err := flowSources(s)
			if err != nil {
				return err
			}
			return o.run(ctx, sources, args)
		}),
	}
	q, f := &o.query, c.Flags()
	f.StringVar(&q.Filter.Table, "table", "", "only this table, by its number or the name of its `STAGE`")
	f.StringVar(&o.match, "match", "", "only flows with these fields: `FIELD[=VALUE],...`, or with a part of the match")
	f.StringVar(&q.Filter.Cookie, "cookie", "", "only this `COOKIE[/MASK]`")
	f.StringVar(&q.Filter.Port, "port", "", "only flows that match this `PORT`: a logical one or an interface")
	f.StringVar(&q.Filter.Switch, "switch", "", "only flows of this logical `SWITCH`")
	f.StringVar(&q.Filter.Router, "router", "", "only flows of this logical `ROUTER`")
	f.StringVar(&q.Filter.Policy, "policy", "", "only flows for a rule whose description contains `TEXT`")
	f.StringVar(&q.Filter.ACL, "acl", "", "only flows for an ACL whose description contains `TEXT`")
	f.BoolVar(&q.Filter.Hit, "hit", false, "only flows that matched packets")
	f.BoolVar(&q.Filter.NeverHit, "never-hit", false, "only flows that matched no packet")
	f.IntVar(&q.Limit, "limit", 0, "list at most this `NUMBER` of flows; with --tree, of each stage")
	f.BoolVar(&o.tree, "tree", false, "list the stages with their counts, each with its flows")
	f.BoolVar(&o.datapath, "datapath", false, "list the recorded flows of the datapath, each compared with what the running replica does")
	choiceFlag(c, &o.sort, "sort", "", "recorded, packets, bytes or table", "recorded", "packets", "bytes", "table")
	for _, name := range []string{"table", "match", "cookie", "port", "switch", "router", "policy", "acl", "hit", "never-hit", "tree", "sort"} {
		c.MarkFlagsMutuallyExclusive("datapath", name)
	}
	o.outputFlag(c)
	o.nodeFlag(c)
	return c
}

// flowSources returns the nodes of a set.
func flowSources(s *set.Set) (sources []flows.Source, err error) {
	for _, n := range s.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			return nil, err
		}
		sources = append(sources, flows.Source{Name: n.Name, Dir: wd})
	}
	return sources, nil
}

func (o *flowsOptions) run(ctx context.Context, sources []flows.Source, args []string) error {
	if o.datapath {
		return o.runDatapath(ctx, sources, args)
	}
	q := o.query
	if q.Limit < 0 || q.Filter.Hit && q.Filter.NeverHit {
		return fmt.Errorf("%w: --limit takes a number that is not negative, and --hit excludes --never-hit", errUsage)
	}
	if len(args) == 1 {
		q.Bridge = args[0]
	}
	if o.match != "" {
		q.Filter.Match = strings.Split(o.match, ",")
	}
	if o.sort != "recorded" {
		q.Sort = flows.Order(o.sort)
	}
	out := bufio.NewWriterSize(o.Out, 1<<16)
	p := o.printer(out)
	var listed flows.Listed
	var err error
	if o.tree {
		listed, err = flows.Tree(ctx, sources, q, p.stage, p.flow)
	} else {
		listed, err = flows.List(ctx, sources, q, p.flow)
	}
	if err == nil {
		err = p.end(listed)
	}
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	o.warnEach("", listed.Remarks)
	if err == nil && listed.Lost > 0 {
		err = errIncomplete
	}
	return err
}

// flowPrinter prints flows as they are found.
type flowPrinter interface {
	stage(flows.Stage) error
	flow(flows.Flow) error
	end(flows.Listed) error
}

func (o *flowsOptions) printer(out *bufio.Writer) flowPrinter {
	if o.format == formatTable {
		return &flowText{out: out, width: terminalWidth(o.Out), tree: o.tree, mixed: o.sort != "recorded" && !o.tree}
	}
	return &flowDocument{out: out, yaml: o.format == "yaml"}
}

// flowText prints flows as lines.
type flowText struct {
	out   *bufio.Writer
	width int // of the terminal, 0 for none
	tree  bool
	mixed bool   // each line names its bridge, because flows of several may alternate
	last  string // the bridge of the last line
	lines int
}

// place prints the node and the bridge if they are not those of the line before.
func (p *flowText) place(node, bridge string) {
	place := "bridge " + bridge
	if node != "" {
		place = "node " + node + ", " + place
	}
	if place == p.last || p.mixed {
		return
	}
	if p.last != "" {
		fmt.Fprintln(p.out)
	}
	p.last = place
	fmt.Fprintf(p.out, "%s\n", terminal.Escape(place))
	if !p.tree {
		fmt.Fprintln(p.out, "   PACKETS  TABLE  PRIORITY  MATCH  FOR")
	}
}

func (p *flowText) stage(s flows.Stage) error {
	p.place(s.Node, s.Bridge)
	p.print(fmt.Sprintf("table %d", s.Table), s.Name, fmt.Sprintf("%d flows, %d never hit, %d packets", s.Flows, s.NeverHit, s.Packets))
	return p.early()
}

func (p *flowText) flow(f flows.Flow) error {
	p.place(f.Node, f.Bridge)
	packets := "-"
	if f.Packets != nil {
		packets = strconv.FormatUint(*f.Packets, 10)
	}
	what := f.For
	if what == f.Stage {
		what = ""
	}
	if f.Candidates > 1 {
		what += fmt.Sprintf(" (or one of %d others)", f.Candidates-1)
	}
	if f.Clause {
		what = "clause of " + what
	}
	head := fmt.Sprintf("%10s", packets)
	table := strings.TrimSpace(fmt.Sprintf("%d %s", f.Table, f.Stage))
	switch {
	case p.tree:
		p.print(head, strconv.Itoa(f.Priority), f.Where(), what)
	case p.mixed:
		p.print(head, strings.TrimSpace(f.Node+" "+f.Bridge), table, strconv.Itoa(f.Priority), f.Where(), what)
	default:
		p.print(head, table, strconv.Itoa(f.Priority), f.Where(), what)
	}
	return p.early()
}

// early writes the first lines at once.
func (p *flowText) early() error {
	const first = 64
	if p.lines++; p.lines == first {
		return p.out.Flush()
	}
	return nil
}

// print prints parts on a line, or wrapped and indented where they do not fit the
// terminal.
func (p *flowText) print(parts ...string) {
	const indent = 12
	line := ""
	for _, part := range parts {
		if part == "" {
			continue
		}
		part = terminal.Escape(part)
		switch {
		case line == "":
			line = part
		case p.width == 0 || runewidth.StringWidth(line)+2+runewidth.StringWidth(part) <= p.width:
			line += "  " + part
		default:
			fmt.Fprintln(p.out, line)
			lines := answer.Wrap(part, max(p.width-indent, indent))
			for _, l := range lines[:len(lines)-1] {
				fmt.Fprintf(p.out, "%*s%s\n", indent, "", l)
			}
			line = strings.Repeat(" ", indent) + lines[len(lines)-1]
		}
	}
	fmt.Fprintln(p.out, line)
}

func (p *flowText) end(l flows.Listed) error {
	if l.Flows == 0 {
		fmt.Fprintln(p.out, "No flow is selected.")
	}
	return nil
}

// flowDocument prints a document with a list of flows, one after the other: a node can
// have a million.
type flowDocument struct {
	out    *bufio.Writer
	yaml   bool
	count  int
	stages []flows.Stage
}

func (p *flowDocument) stage(s flows.Stage) error {
	p.stages = append(p.stages, s)
	return nil
}

func (p *flowDocument) flow(f flows.Flow) error {
	p.begin()
	p.count++
	return p.item(f, p.count > 1)
}

func (p *flowDocument) begin() {
	if p.count > 0 {
		return
	}
	if p.yaml {
		fmt.Fprintln(p.out, "flows:")
	} else {
		fmt.Fprint(p.out, "{\n  \"flows\": [")
	}
}

// item prints an element of a list.
func (p *flowDocument) item(v any, more bool) error {
	if p.yaml {
		return terminal.WriteYAML(p.out, []any{v})
	}
	if more {
		fmt.Fprint(p.out, ",")
	}
	var text bytes.Buffer
	if err := terminal.WriteJSON(&text, v); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, "\n    "+strings.ReplaceAll(strings.TrimSpace(text.String()), "\n", "\n    "))
	return err
}

func (p *flowDocument) end(l flows.Listed) error {
	if p.count == 0 {
		if p.yaml {
			fmt.Fprint(p.out, "flows: []\n")
		} else {
			p.begin()
		}
	}
	if p.yaml {
		return p.tailYAML(l)
	}
	fmt.Fprint(p.out, "\n  ]")
	if len(p.stages) > 0 {
		fmt.Fprint(p.out, ",\n  \"stages\": [")
		for i, s := range p.stages {
			if err := p.item(s, i > 0); err != nil {
				return err
			}
		}
		fmt.Fprint(p.out, "\n  ]")
	}
	_, err := fmt.Fprintf(p.out, ",\n  \"lost\": %d\n}\n", l.Lost)
	return err
}

func (p *flowDocument) tailYAML(l flows.Listed) error {
	tail := map[string]any{"lost": l.Lost}
	if len(p.stages) > 0 {
		tail["stages"] = p.stages
	}
	return terminal.WriteYAML(p.out, tail)
}
