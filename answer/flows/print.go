package flows

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Print prints flows as they are found: as lines for people, or in the format json or yaml as a
// document with a list. With tree, they are below their stages. It returns what Query.Known finds
// if no flow is selected.
func Print(ctx context.Context, page *show.Page, format string, sources []Source, query Query, tree bool) (listed Listed, err error) {
	out := bufio.NewWriterSize(page.Out, 1<<16)
	var to printer = &flowText{out: out, width: page.Width, tree: tree, mixed: query.Sort != AsRecorded && !tree}
	if format == "json" || format == "yaml" {
		to = &flowDocument{list: show.List{Out: out, Format: format, Field: "flows"}}
	}
	if tree {
		listed, err = Tree(ctx, sources, query, to.stage, to.flow)
	} else {
		listed, err = List(ctx, sources, query, to.flow)
	}
	if err == nil && listed.Flows == 0 {
		err = query.Known(ctx, sources)
	}
	if err == nil {
		err = to.end(listed)
	}
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	return listed, err
}

// printer prints stages and flows, and then the end.
type printer interface {
	stage(Stage) error
	flow(Flow) error
	end(Listed) error
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

// place prints the node and the bridge if the line before had others.
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

func (p *flowText) stage(s Stage) error {
	p.place(s.Node, s.Bridge)
	p.print(fmt.Sprintf("table %d", s.Table), s.Name, fmt.Sprintf("%d flows, %d never hit, %d packets", s.Flows, s.NeverHit, s.Packets))
	return p.flushEarly()
}

func (p *flowText) flow(named Flow) error {
	p.place(named.Node, named.Bridge)
	packets := "-"
	if named.Packets != nil {
		packets = strconv.FormatUint(*named.Packets, 10)
	}
	what := named.For
	if what == named.Stage {
		what = ""
	}
	if named.Candidates > 1 {
		what += fmt.Sprintf(" (or one of %d others)", named.Candidates-1)
	}
	if named.Clause {
		what = "clause of " + what
	}
	head := fmt.Sprintf("%10s", packets)
	table := strings.TrimSpace(fmt.Sprintf("%d %s", named.Table, named.Stage))
	switch {
	case p.tree:
		p.print(head, strconv.Itoa(named.Priority), named.Where(), what)
	case p.mixed:
		p.print(head, strings.TrimSpace(named.Node+" "+named.Bridge), table, strconv.Itoa(named.Priority), named.Where(), what)
	default:
		p.print(head, table, strconv.Itoa(named.Priority), named.Where(), what)
	}
	return p.flushEarly()
}

// flushEarly writes the first lines at once.
func (p *flowText) flushEarly() error {
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
			lines := show.Wrap(part, max(p.width-indent, indent))
			for _, l := range lines[:len(lines)-1] {
				fmt.Fprintf(p.out, "%*s%s\n", indent, "", l)
			}
			line = strings.Repeat(" ", indent) + lines[len(lines)-1]
		}
	}
	fmt.Fprintln(p.out, line)
}

func (p *flowText) end(l Listed) error {
	if l.Flows == 0 {
		fmt.Fprintln(p.out, "No flow is selected.")
	}
	return nil
}

// Document is what "flows -o json" prints.
type Document struct {
	Flows []Flow `json:"flows"`
	Rest
}

// Rest is what a document has behind the flows.
type Rest struct {
	Stages []Stage `json:"stages,omitempty"` // of a tree
	Lost   int     `json:"lost"`             // lines that held a flow and can't be read
}

// flowDocument prints a Document, one flow after the other: a node can have a million.
type flowDocument struct {
	list   show.List
	stages []Stage
}

func (d *flowDocument) stage(s Stage) error {
	d.stages = append(d.stages, s)
	return nil
}

func (d *flowDocument) flow(f Flow) error { return d.list.Add(f, nil) }

func (d *flowDocument) end(listed Listed) error { return d.list.End(Rest{d.stages, listed.Lost}) }
