package rules

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// Layout describes in which tables of the integration bridge a node's ovn-controller puts the
// logical tables. It changes with the release. The zero Layout is unknown.
type Layout struct {
	Ingress, IngressEnd int // the first table of the pipeline, and the last one
	Egress, EgressEnd   int
}

// release has the tables of a release that belong to no pipeline (controller/lflow.h of
// OVN). A table that the release lacks is 0.
type release struct{ detect, process, remote, vtep, local, loopback, save, physical int }

// releaseOf returns the release whose egress pipeline begins at a table.
func releaseOf(egress int) (release, bool) {
	r, ok := map[int]release{
		40: {0, 0, 37, 0, 38, 39, 64, 65},    // to 22.09
		42: {37, 38, 39, 0, 40, 41, 64, 65},  // 22.12.1 to 24.03
		45: {40, 41, 42, 0, 43, 44, 64, 65},  // 24.09, 25.03
		47: {41, 42, 43, 44, 45, 46, 64, 65}, // 25.09
		48: {42, 43, 44, 45, 46, 47, 64, 65}, // 26.03
		62: {52, 53, 54, 55, 56, 57, 88, 89}, // after 26.03
	}[egress]
	return r, ok
}

// perTable bounds the flows of each table that a poll looks at.
const perTable = 8

// poll finds a layout. It compares the tables of flows with the tables of their logical flows, and
// the majority decides: another row may have the same cookie.
type poll struct {
	rules  *Rules
	votes  map[vote]int
	tables map[vote]int // the last table with this vote
	seen   map[int]int  // votes of each table
}

// vote is the layout of a pipeline by one flow.
type vote struct {
	pipeline string
	first    int // the first table of the pipeline if the flow is of this logical flow
}

func (r *Rules) newPoll() *poll {
	return &poll{rules: r, votes: map[vote]int{}, tables: map[vote]int{}, seen: map[int]int{}}
}

// wants reports whether more flows of a table are looked at.
func (p *poll) wants(table int) bool { return table != 0 && p.seen[table] < perTable }

// add takes the votes of a flow.
func (p *poll) add(f openflow.Key) error {
	if f.Cookie == 0 || f.Cookie > 0xffffffff || !p.wants(f.Table) {
		return nil
	}
	for _, uuid := range p.rules.sb.Begins(logicalFlow, uint32(f.Cookie)) {
		row, ok, err := p.rules.sb.Row(logicalFlow, uuid, "pipeline", "table_id", "priority")
		if err != nil {
			return err
		}
		table, _ := row.Int("table_id")
		priority, _ := row.Int("priority")
		if ok && priority == f.Priority {
			v := vote{row.String("pipeline"), f.Table - table}
			p.seen[f.Table]++
			p.votes[v]++
			p.tables[v] = max(p.tables[v], f.Table)
		}
	}
	return nil
}

// winner returns the vote for a pipeline that most flows have, and how many others there are.
func (p *poll) winner(pipeline string) (best vote, others int) {
	best = vote{pipeline: pipeline}
	for _, v := range slices.SortedFunc(maps.Keys(p.votes), func(a, b vote) int { return a.first - b.first }) {
		if v.pipeline == pipeline {
			others += p.votes[v]
			if p.votes[v] > p.votes[best] {
				best = v
			}
		}
	}
	return best, others - p.votes[best]
}

// isDecided reports whether further flows would hardly change the layout: both pipelines have a
// clear majority, and a known release has the last tables of both.
func (p *poll) isDecided() bool {
	for _, pipeline := range []string{"ingress", "egress"} {
		if best, others := p.winner(pipeline); p.votes[best] < 2*perTable+4*others {
			return false
		}
	}
	return p.layout().Known()
}

// layout returns the layout by the votes until now. A pipeline without flows is 0.
func (p *poll) layout() Layout {
	in, _ := p.winner("ingress")
	out, _ := p.winner("egress")
	l := Layout{Ingress: in.first, IngressEnd: p.tables[in], Egress: out.first, EgressEnd: p.tables[out]}
	if known, ok := releaseOf(l.Egress); ok {
		l.IngressEnd, l.EgressEnd = known.remote-1, known.save-1
		if known.detect > 0 {
			l.IngressEnd = known.detect - 1
		}
	}
	return l
}

// Layout returns the layout of the node that the flows of an integration bridge come from.
func (r *Rules) Layout(flows iter.Seq[openflow.Key]) (Layout, error) {
	return r.newPoll().take(flows)
}

// take takes the votes of flows, until the layout is clear, and returns it.
func (p *poll) take(flows iter.Seq[openflow.Key]) (Layout, error) {
	last := 0
	for k := range flows {
		if k.Table != last && p.isDecided() {
			break
		}
		last = k.Table
		if err := p.add(k); err != nil {
			return Layout{}, err
		}
	}
	return p.layout(), nil
}

// ReadLayout returns the layout of the node that a dump of an integration bridge comes from: the
// zero Layout for a dump that was not collected. It parses few flows of each table, and stops
// once the layout is clear.
func (r *Rules) ReadLayout(ctx context.Context, data *workdir.Data, dump string) (Layout, error) {
	f, ok, err := data.Collected(dump)
	if err != nil || !ok {
		return Layout{}, err
	}
	defer f.Close()
	p := r.newPoll()
	wanted := func(line string) bool {
		table, ok := tableIn(line)
		return !ok || p.wants(table)
	}
	layout, err := p.take(func(yield func(openflow.Key) bool) {
		for flow, problem := range openflow.FlowsIn(interrupt.Reader(ctx, f), wanted) {
			if problem == nil && !yield(flow.Key()) { // the report names problems
				return
			}
		}
	})
	return layout, cmp.Or(err, ctx.Err())
}

// tableIn returns the table of a flow in a line of a dump, without parsing the rest; ok is false
// if the line does not begin as ovs-ofctl dump-flows prints it.
func tableIn(line string) (table int, ok bool) {
	_, rest, found := strings.Cut(line, " table=")
	text, _, end := strings.Cut(rest, ",")
	table, err := strconv.Atoi(text)
	return table, found && end && err == nil
}

// logical returns the pipeline and the logical table of a table, "" for a table of neither
// pipeline or an unknown layout.
func (l Layout) logical(table int) (pipeline string, logicalTable int) {
	switch {
	case l.Egress > 0 && table >= l.Egress && table <= l.EgressEnd:
		return "egress", table - l.Egress
	case l.Ingress > 0 && table >= l.Ingress && table <= l.IngressEnd:
		return "ingress", table - l.Ingress
	}
	return "", 0
}

// Known reports whether the layout has both pipelines, and belongs to a release whose other tables
// have names.
func (l Layout) Known() bool {
	_, known := releaseOf(l.Egress)
	return known && l.Ingress > 0
}

// TableName names a table by its job: "" if the layout is unknown.
func (l Layout) TableName(table int) string {
	if l == (Layout{}) {
		return ""
	}
	return l.physical(table)
}

// IsLogical reports whether a table belongs to a pipeline.
func (l Layout) IsLogical(table int) bool {
	pipeline, _ := l.logical(table)
	return pipeline != ""
}

// The tables with a flow for each MAC binding.
const (
	neighbours     = "MAC addresses of neighbours"
	usedNeighbours = "use of MAC bindings"
)

// HasNeighbours reports whether a stage has flows for the MAC addresses that routers have learned.
func HasNeighbours(stage string) bool {
	return strings.HasPrefix(stage, neighbours) || stage == usedNeighbours
}

// physical names a table that belongs to no pipeline.
func (l Layout) physical(table int) string {
	if pipeline, logical := l.logical(table); pipeline != "" {
		return fmt.Sprintf("%s table %d", pipeline, logical)
	}
	names := map[int]string{}
	if known, ok := releaseOf(l.Egress); ok {
		names = map[int]string{known.detect: "output: large packets", known.process: "output: large packets, ICMP error", known.remote: "output: to other chassis",
			known.vtep: "output: to VTEPs", known.local: "output: to this chassis", known.loopback: "output: loopback check",
			known.save: "output: save the input port", known.physical: "output: from logical to physical"}
		// The tables that logical actions look up follow in the same order in all releases.
		for i, name := range []string{neighbours, neighbours + ", lookup", "load balancer: hairpin",
			"load balancer: hairpin reply", "load balancer: hairpin SNAT", "FDB", "FDB, lookup", "port security of the input port",
			"port security of the input port, ARP and ND", "port security of the output port", "ECMP next hops: MAC addresses", "ECMP next hops",
			"load balancer: affinity", usedNeighbours, "conntrack: zone", "conntrack: original IPv4 destination",
			"conntrack: original IPv6 destination", "conntrack: original destination port", "output: flood to remote chassis", "conntrack: state",
			"conntrack: original protocol", "FDB of remote chassis", "FDB of remote chassis, learning", "EVPN: ARP lookup"} {
			names[known.physical+1+i] = name
		}
	}
	names[0] = "input: from physical to logical"
	if name := names[table]; name != "" {
		return name
	}
	return fmt.Sprintf("table %d", table)
}

// passes reports whether a table outside of the pipelines has a flow with which
// ovn-controller sends every packet on that no other flow matches (controller/physical.c).
func (l Layout) passes(table int) bool {
	known, ok := releaseOf(l.Egress)
	return ok && table > 0 && slices.Contains([]int{known.detect, known.loopback, known.save}, table)
}

// delivers reports whether a table sends packets to the ports of this chassis or to other
// chassis.
func (l Layout) delivers(table int) bool {
	known, ok := releaseOf(l.Egress)
	return ok && slices.Contains([]int{known.remote, known.vtep, known.local, known.physical}, table)
}
