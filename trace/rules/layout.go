package rules

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Layout is where a node's ovn-controller puts the logical tables among those of the
// integration bridge. It changes with the release. The zero Layout is unknown.
type Layout struct {
	Ingress, IngressEnd int // the first table of the pipeline, and the last one
	Egress, EgressEnd   int
}

// release has the tables of a release that belong to no pipeline (controller/lflow.h of
// OVN). Those that the release lacks are 0.
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

// perTable bounds the flows of each table that Layout looks at.
const perTable = 8

// Layout returns the layout of the node that a dump of its integration bridge comes from.
// It compares the tables of flows with those of their logical flows, and the majority
// decides: a cookie may be that of another row. A pipeline without flows is 0.
func (r *Rules) Layout(flows iter.Seq[Flow]) (Layout, error) {
	type vote struct {
		pipeline string
		first    int // the first table of the pipeline if the flow is of this logical flow
	}
	votes, tables, seen := map[vote]int{}, map[vote]int{}, map[int]int{}
	for f := range flows {
		if f.Cookie == 0 || f.Cookie > 0xffffffff || f.Table == 0 || seen[f.Table] >= perTable {
			continue
		}
		for _, uuid := range r.sb.Begins(logicalFlow, uint32(f.Cookie)) {
			row, ok, err := r.sb.Row(logicalFlow, uuid, "pipeline", "table_id", "priority")
			if err != nil {
				return Layout{}, err
			}
			table, _ := row.Int("table_id")
			priority, _ := row.Int("priority")
			if ok && priority == f.Priority {
				v := vote{row.String("pipeline"), f.Table - table}
				seen[f.Table]++
				votes[v]++
				tables[v] = max(tables[v], f.Table)
			}
		}
	}
	first := func(pipeline string) vote {
		best := vote{pipeline: pipeline}
		for _, v := range slices.SortedFunc(maps.Keys(votes), func(a, b vote) int { return a.first - b.first }) {
			if v.pipeline == pipeline && votes[v] > votes[best] {
				best = v
			}
		}
		return best
	}
	in, out := first("ingress"), first("egress")
	l := Layout{Ingress: in.first, IngressEnd: tables[in], Egress: out.first, EgressEnd: tables[out]}
	if known, ok := releaseOf(l.Egress); ok {
		l.IngressEnd, l.EgressEnd = known.remote-1, known.save-1
		if known.detect > 0 {
			l.IngressEnd = known.detect - 1
		}
	}
	return l, nil
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

// Known reports whether the layout has both pipelines and is that of a release whose other
// tables have names.
func (l Layout) Known() bool {
	_, known := releaseOf(l.Egress)
	return known && l.Ingress > 0
}

// TableName names a table by what it is for: "" if the layout is unknown.
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
		for i, name := range []string{"MAC addresses of neighbours", "MAC addresses of neighbours, lookup", "load balancer: hairpin",
			"load balancer: hairpin reply", "load balancer: hairpin SNAT", "FDB", "FDB, lookup", "port security of the input port",
			"port security of the input port, ARP and ND", "port security of the output port", "ECMP next hops: MAC addresses", "ECMP next hops",
			"load balancer: affinity", "use of MAC bindings", "conntrack: zone", "conntrack: original IPv4 destination",
			"conntrack: original IPv6 destination", "conntrack: original destination port", "output: flood to remote chassis", "conntrack: state"} {
			names[known.physical+1+i] = name
		}
	}
	names[0] = "input: from physical to logical"
	if name := names[table]; name != "" {
		return name
	}
	return fmt.Sprintf("table %d", table)
}

// delivers reports whether a table sends packets to the ports of this chassis or to other
// chassis.
func (l Layout) delivers(table int) bool {
	known, ok := releaseOf(l.Egress)
	return ok && slices.Contains([]int{known.remote, known.vtep, known.local, known.physical}, table)
}
