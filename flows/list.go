package flows

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// Order is the order in which flows are listed.
type Order string

// The orders. Flows with equal counters are in the order of the dump.
const (
	AsRecorded Order = ""
	ByPackets  Order = "packets"
	ByBytes    Order = "bytes"
	ByTable    Order = "table"
)

// Source is a node whose flows are listed.
type Source struct {
	Name string // "" for a single node
	Dir  *workdir.Dir
}

// Query is what is listed, and how.
type Query struct {
	Bridge string // "" for all
	Filter Filter
	Sort   Order
	Limit  int // of flows; 0 for none
}

// Listed is what a listing could not show.
type Listed struct {
	Flows   int      // that were selected
	Lost    int      // lines that held a flow and can't be read
	Remarks []string // sentences for the user
}

// List calls use with the flows that a query selects. It holds no flow in memory: sorted,
// it reads each again, from its place in the dump.
func List(ctx context.Context, sources []Source, q Query, use func(Flow) error) (Listed, error) {
	var done Listed
	if err := q.Filter.prepare(); err != nil {
		return done, err
	}
	if q.Sort == AsRecorded {
		return done, q.stream(ctx, sources, &done, use)
	}
	return done, q.sorted(ctx, sources, &done, use)
}

// stream lists flows as recorded. It stops at the limit.
func (q *Query) stream(ctx context.Context, sources []Source, done *Listed, use func(Flow) error) error {
	for _, s := range sources {
		if q.Limit > 0 && done.Flows >= q.Limit {
			break
		}
		if err := q.streamNode(ctx, s, done, use); err != nil {
			return err
		}
	}
	return nil
}

func (q *Query) streamNode(ctx context.Context, s Source, done *Listed, use func(Flow) error) error {
	n, err := Open(ctx, s.Name, s.Dir, q.Bridge)
	if err != nil {
		return nodeError(s.Name, err)
	}
	defer n.Close()
	done.remark(s.Name, n.Remarks...)
	for _, b := range n.Bridges {
		err := n.each(ctx, b, &q.Filter, nil, done, func(r *record) (bool, error) {
			if q.Limit > 0 && done.Flows >= q.Limit {
				return false, nil
			}
			done.Flows++
			f, err := n.name(b, r)
			if err != nil {
				return false, err
			}
			return true, use(f)
		})
		if err != nil {
			return nodeError(s.Name, err)
		}
	}
	return nil
}

// each calls use with the flows of a bridge that a filter selects, until it returns false.
// It reads no lines that want does not accept; nil accepts all.
func (n *Node) each(ctx context.Context, b *Bridge, filter *Filter, want func(line string) bool, done *Listed, use func(r *record) (bool, error)) error {
	f, err := os.Open(b.dump)
	if err != nil {
		return err
	}
	defer f.Close()
	count, lost := 0, done.Lost
	uncounted := false
	defer func() {
		done.unread(n, b, done.Lost-lost)
		if uncounted && (filter.Hit || filter.NeverHit) {
			done.remark(n.Name, fmt.Sprintf("bridge %s: flows without recorded counters are neither hit nor never hit", b.Name))
		}
	}()
	accepted := func(line string) bool { return filter.mayAccept(line) && (want == nil || want(line)) }
	for flow, problem := range openflow.FlowsIn(f, accepted) {
		if count++; count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, ok := parse(flow)
		if problem != nil || !ok {
			if problem == nil || problem.Lost {
				done.Lost++
			}
			continue
		}
		uncounted = uncounted || !r.Counted
		if selected, err := filter.accepts(n, b, &r); err != nil {
			return err
		} else if !selected {
			continue
		}
		if goOn, err := use(&r); err != nil || !goOn {
			return err
		}
	}
	return nil
}

func (l *Listed) remark(node string, texts ...string) {
	for _, text := range texts {
		if node != "" {
			text = "node " + node + ": " + text
		}
		l.Remarks = append(l.Remarks, text)
	}
}

// unread remarks on lines of a dump that can't be read.
func (l *Listed) unread(n *Node, b *Bridge, lines int) {
	if lines > 0 {
		l.remark(n.Name, fmt.Sprintf("bridge %s: %d lines of the recorded flows can't be read", b.Name, lines))
	}
}

func nodeError(node string, err error) error {
	if node == "" || err == nil {
		return err
	}
	return fmt.Errorf("node %s: %w", node, err)
}

// place is where a flow is, and the values by which it is sorted.
type place struct {
	key    uint64 // greater ones come first
	at     int64
	node   int32
	bridge int32
}

// sorted lists the flows in another order than recorded. Of several nodes, it holds the
// named flows within the limit, so that it need not keep the databases of all nodes open.
func (q *Query) sorted(ctx context.Context, sources []Source, done *Listed, use func(Flow) error) error {
	var places []place
	var least uint64 // the counter that a flow has to exceed once the limit is reached
	mayBeFirst := func(line string) bool {
		if least == 0 || q.Sort == ByTable {
			return true
		}
		c := openflow.CountersOf(line)
		return !c.Counted || q.key(&record{Flow: openflow.Flow{Counters: c}}) > least
	}
	nodes := make([]*Node, len(sources))
	defer func() { closeAll(nodes) }()
	for i, s := range sources {
		n, err := Open(ctx, s.Name, s.Dir, q.Bridge)
		if err != nil {
			return nodeError(s.Name, err)
		}
		nodes[i] = n
		done.remark(s.Name, n.Remarks...)
		for j, b := range n.Bridges {
			err := n.each(ctx, b, &q.Filter, mayBeFirst, done, func(r *record) (bool, error) {
				places = append(places, place{q.key(r), r.At, int32(i), int32(j)})
				if q.Limit > 0 && len(places) >= 2*q.Limit+1024 {
					places = q.first(places)
					least = places[len(places)-1].key
				}
				return true, nil
			})
			if err != nil {
				return nodeError(s.Name, err)
			}
		}
		if q.Limit > 0 && len(sources) > 1 {
			n.Close()
			nodes[i] = nil
		}
	}
	places = q.first(places)
	done.Flows = len(places)
	if q.Limit == 0 || len(sources) == 1 {
		return readAgain(ctx, nodes, places, func(_ int, f Flow) error { return use(f) })
	}
	return q.byNode(ctx, sources, places, use)
}

func closeAll(nodes []*Node) {
	for _, n := range nodes {
		if n != nil {
			n.Close()
		}
	}
}

// byNode names the flows at places one node after the other, and calls use with them in
// their order.
func (q *Query) byNode(ctx context.Context, sources []Source, places []place, use func(Flow) error) error {
	named := make([]Flow, len(places))
	nodes := make([]*Node, len(sources))
	for i, s := range sources {
		var own []place
		var ranks []int
		for rank, p := range places {
			if int(p.node) == i {
				own, ranks = append(own, p), append(ranks, rank)
			}
		}
		if len(own) == 0 {
			continue
		}
		n, err := Open(ctx, s.Name, s.Dir, q.Bridge)
		if err != nil {
			return nodeError(s.Name, err)
		}
		nodes[i] = n
		err = readAgain(ctx, nodes, own, func(at int, f Flow) error { named[ranks[at]] = f; return nil })
		n.Close()
		if err != nil {
			return nodeError(s.Name, err)
		}
	}
	for _, f := range named {
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// key returns the value by which a flow is sorted.
func (q *Query) key(r *record) uint64 {
	switch q.Sort {
	case ByPackets:
		return r.Packets
	case ByBytes:
		return r.Bytes
	}
	return ^(uint64(uint32(r.table))<<32 | uint64(^uint32(r.priority)))
}

// first sorts flows and returns those within the limit.
func (q *Query) first(places []place) []place {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.node, b.node), cmp.Compare(a.bridge, b.bridge), cmp.Compare(a.at, b.at))
	})
	if q.Limit > 0 && len(places) > q.Limit {
		places = places[:q.Limit]
	}
	return places
}

// readAgain calls use with the flows at places.
func readAgain(ctx context.Context, nodes []*Node, places []place, use func(index int, f Flow) error) error {
	dumps := map[*Bridge]*os.File{}
	defer func() {
		for _, f := range dumps {
			f.Close()
		}
	}()
	for i, p := range places {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := nodes[p.node]
		b := n.Bridges[p.bridge]
		if dumps[b] == nil {
			f, err := os.Open(b.dump)
			if err != nil {
				return err
			}
			dumps[b] = f
		}
		flow, err := openflow.FlowAt(dumps[b], p.at)
		if err != nil {
			return fmt.Errorf("the flows of bridge %s changed while they were read: %w", b.Name, err)
		}
		r, _ := parse(flow)
		named, err := n.name(b, &r)
		if err != nil {
			return err
		}
		if err := use(i, named); err != nil {
			return err
		}
	}
	return nil
}
