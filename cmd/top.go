package cmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/flows"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
)

type topOptions struct {
	*options
	by       string
	limit    int
	shadowed bool
}

func newTop(shared *options) *cobra.Command {
	o := &topOptions{options: shared}
	c := &cobra.Command{
		Use: "top", Short: "Show which rules cost the most flows, and which do nothing",
		Long: "Show which rule, ACL, policy, load balancer, route, stage or table costs how many of the\n" +
			"recorded flows of a node or of a set; which rules became the product of several lists of\n" +
			"values; which have duplicates; and which matched no packet on any node. No replica needs\n" +
			"to run.\n\n" +
			"With --shadowed, a packet is made for each ACL that matched none, and traced on the running\n" +
			"replicas: the ACL is shadowed if another takes the packet in its stage.\n\n" +
			"Exit code 3: a line of a dump can't be read.",
		Example: "  ovs-offline -w nodes top --by policy --limit 20\n  ovs-offline top --by acl --shadowed",
		Args:    exactArgs(),
		RunE: o.workdirOrSet(func(ctx context.Context, wd *workdir.Dir, _ []string) error {
			return o.run(ctx, []flows.Source{{Dir: wd}})
		}, func(ctx context.Context, s *set.Set, _ []string) error {
			sources, err := flowSources(s)
			if err != nil {
				return err
			}
			return o.run(ctx, sources)
		}),
	}
	var kinds []string
	for _, kind := range flows.Kinds() {
		kinds = append(kinds, string(kind))
	}
	choiceFlag(c, &o.by, "by", "", "what flows are added up by: "+strings.Join(kinds, ", "), kinds...)
	c.Flags().IntVar(&o.limit, "limit", 10, "length of each list; 0 for all")
	c.Flags().BoolVar(&o.shadowed, "shadowed", false, "trace a packet for each ACL that matched none")
	o.outputFlag(c)
	o.nodeFlag(c)
	return c
}

func (o *topOptions) run(ctx context.Context, sources []flows.Source) error {
	if o.limit < 0 {
		return fmt.Errorf("%w: --limit takes a number that is not negative", errUsage)
	}
	top, listed, err := flows.Count(ctx, sources, flows.By(o.by), o.limit)
	if err != nil {
		return err
	}
	defer top.Close()
	if o.format == formatTable { // before what takes longer
		o.printCosts(top)
	}
	if err := top.Examine(ctx); err != nil {
		return err
	}
	if o.shadowed {
		if top.Shadows, err = flows.FindShadows(ctx, sources); err != nil {
			return err
		}
	}
	if err := o.emit(top, func() { o.printFindings(top) }); err != nil {
		return err
	}
	o.warnEach("", listed.Remarks)
	if listed.Lost > 0 {
		return errIncomplete
	}
	return nil
}

// maxCell bounds a cell of a table; -o json has all of it.
const maxCell = 90

func cell(text string) string { return terminal.Escape(openflow.Shorten(text, maxCell)) }

func (o *topOptions) printCosts(top *flows.Top) {
	fmt.Fprintf(o.Out, "%d flows, %d of them by %s", top.Flows, top.Counted, top.By)
	if top.Unknown > 0 {
		fmt.Fprintf(o.Out, "; %d have a cookie that no row has", top.Unknown)
	}
	fmt.Fprintln(o.Out)
	o.costs("Most flows", top.Costs, top.Groups)
	o.costs("Never hit", top.NeverHit, top.Never)
}

func (o *topOptions) printFindings(top *flows.Top) {
	o.products(top.Products)
	o.duplicates(top.Duplicates)
	o.shadows(top.Shadows)
}

// costs prints a list of costs, of all there are.
func (o *topOptions) costs(title string, list []flows.Cost, all int) {
	fmt.Fprintf(o.Out, "\n%s: %d of %d\n", title, len(list), all)
	if len(list) == 0 {
		return
	}
	t := o.newTable("flows", "never hit", "packets", "name", "nodes")
	for _, c := range list {
		packets := any(c.Packets)
		if !c.Counted {
			packets = "-"
		}
		var nodes []string
		for _, n := range slices.Sorted(maps.Keys(c.Nodes)) {
			nodes = append(nodes, fmt.Sprintf("%s %d", n, c.Nodes[n]))
		}
		t.AppendRow([]any{c.Flows, c.NeverHit, packets, cell(c.Name), cell(strings.Join(nodes, ", "))})
	}
	t.Render()
}

func (o *topOptions) products(list []flows.Product) {
	fmt.Fprintf(o.Out, "\nCross products: %d\n", len(list))
	if len(list) == 0 {
		return
	}
	t := o.newTable("flows", "node", "stage", "name", "values")
	for _, p := range list {
		t.AppendRow([]any{p.Flows, cell(p.Node), cell(p.Stage), cell(p.Name), cell(p.Text())})
	}
	t.Render()
}

func (o *topOptions) duplicates(list []flows.Duplicate) {
	fmt.Fprintf(o.Out, "\nDuplicates: %d\n", len(list))
	if len(list) == 0 {
		return
	}
	t := o.newTable("priority", "where", "match", "rules")
	for _, d := range list {
		var rows []string
		for _, r := range d.Rows {
			rows = append(rows, cell(r.Name))
		}
		t.AppendRow([]any{d.Priority, cell(d.Where), cell(d.Match), strings.Join(rows, "\n")})
	}
	t.Render()
}

func (o *topOptions) shadows(s *flows.Shadows) {
	if s == nil {
		return
	}
	fmt.Fprintf(o.Out, "\nShadowed: %d of the %d ACLs that were never hit and could be examined\n", len(s.Rules), s.Examined)
	if len(s.Rules) > 0 {
		t := o.newTable("node", "ACL", "shadowed by", "packet")
		for _, r := range s.Rules {
			t.AppendRow([]any{cell(r.Node), cell(r.Name), cell(r.By), cell(r.Packet)})
		}
		t.Render()
	}
	for _, why := range slices.Sorted(maps.Keys(s.NotExamined)) {
		fmt.Fprintln(o.Out, wrapped(fmt.Sprintf("not examined: %d, because %s", s.NotExamined[why], why), cmp.Or(terminalWidth(o.Out), math.MaxInt)))
	}
}
