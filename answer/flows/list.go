package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
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

// Query selects flows, and their order.
type Query struct {
	Bridge string // "" for all
	Filter Filter
	Sort   Order
	Limit  int // the number of flows; 0 for no limit
}

// Listed describes a listing, and what it lacks.
type Listed struct {
	Flows   int      // that were selected
	Lost    int      // lines that held a flow and can't be read
	Remarks []string // sentences for the user
}

// List calls use with the flows that a query selects. It holds no flow in memory: sorted,
// it reads each again, from its place in the dump.
func List(ctx context.Context, sources []Source, query Query, use func(Flow) error) (Listed, error) {
	return query.listResolving(ctx, sources, func(done *Listed) error {
		if query.Sort == AsRecorded {
			return query.stream(ctx, sources, done, use)
		}
		return query.listSorted(ctx, sources, done, use)
	})
}

// listResolving lists the flows that a query selects. If there are none, it looks the port up by the names
// that users know, such as the name of a pod, and lists the flows of its logical port: the names of a
// large deployment take seconds.
func (q *Query) listResolving(ctx context.Context, sources []Source, list func(done *Listed) error) (Listed, error) {
	var done Listed
	if err := q.Filter.prepare(); err != nil {
		return done, err
	}
	if err := list(&done); err != nil || done.Flows > 0 {
		return done, err
	}
	port, err := q.logicalPort(ctx, sources)
	if port == "" || port == q.Filter.Port || err != nil {
		return done, err
	}
	q.Filter.Port, done = port, Listed{}
	err = list(&done)
	return done, err
}

// stream lists flows as recorded. It stops at the limit.
func (q *Query) stream(ctx context.Context, sources []Source, done *Listed, use func(Flow) error) error {
	for _, source := range sources {
		if q.Limit > 0 && done.Flows >= q.Limit {
			break
		}
		if err := q.streamNode(ctx, source, done, use); err != nil {
			return err
		}
	}
	return nil
}

func (q *Query) streamNode(ctx context.Context, source Source, done *Listed, use func(Flow) error) error {
	node, err := Open(ctx, source.Name, source.Dir, q.Bridge)
	if err != nil {
		return nodeError(source.Name, err)
	}
	defer node.Close()
	done.remark(source.Name, node.Remarks...)
	for _, bridge := range node.Bridges {
		err := node.eachFlow(ctx, bridge, &q.Filter, nil, done, func(flow *record) (bool, error) {
			if q.Limit > 0 && done.Flows >= q.Limit {
				return false, nil
			}
			done.Flows++
			named, err := node.name(bridge, flow)
			if err != nil {
				return false, err
			}
			return true, use(named)
		})
		if err != nil {
			return nodeError(source.Name, err)
		}
	}
	return nil
}

// eachFlow calls use with the flows of a bridge that a filter selects, until it returns false.
// It reads no lines that want does not accept; nil accepts all.
func (n *Node) eachFlow(ctx context.Context, bridge *Bridge, filter *Filter, want func(line string) bool, done *Listed, use func(flow *record) (bool, error)) error {
	file, err := bridge.flows()
	if err != nil {
		return err
	}
	defer file.Close()
	count, lost := 0, done.Lost
	uncounted := false
	defer func() {
		done.remarkUnread(n, bridge, done.Lost-lost)
		if uncounted && (filter.Hit || filter.NeverHit) {
			done.remark(n.Name, fmt.Sprintf("bridge %s: flows without recorded counters are neither hit nor never hit", bridge.Name))
		}
	}()
	accepted := func(line string) bool { return filter.mayAccept(line) && (want == nil || want(line)) }
	for flow, problem := range openflow.FlowsIn(file, accepted) {
		if count++; count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		record, ok := parse(flow)
		if problem != nil || !ok {
			if problem == nil || problem.Lost {
				done.Lost++
			}
			continue
		}
		uncounted = uncounted || !record.Counted
		if selected, err := filter.accepts(n, bridge, &record); err != nil {
			return err
		} else if !selected {
			continue
		}
		if more, err := use(&record); err != nil || !more {
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

// remarkUnread remarks on lines of a dump that can't be read.
func (l *Listed) remarkUnread(n *Node, b *Bridge, lines int) {
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

// place is where a flow is in the dumps, with the value by which it is sorted.
type place struct {
	key    uint64 // greater ones come first
	at     int64
	node   int32
	bridge int32
}

// listSorted lists the flows in an order other than as recorded. Of several nodes, it holds the
// named flows within the limit, so that it need not keep the databases of all nodes open.
func (q *Query) listSorted(ctx context.Context, sources []Source, done *Listed, use func(Flow) error) error {
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
	for i, source := range sources {
		node, err := Open(ctx, source.Name, source.Dir, q.Bridge)
		if err != nil {
			return nodeError(source.Name, err)
		}
		nodes[i] = node
		done.remark(source.Name, node.Remarks...)
		for j, b := range node.Bridges {
			err := node.eachFlow(ctx, b, &q.Filter, mayBeFirst, done, func(flow *record) (bool, error) {
				places = append(places, place{q.key(flow), flow.At, int32(i), int32(j)})
				if q.Limit > 0 && len(places) >= 2*q.Limit+1024 {
					places = q.first(places)
					least = places[len(places)-1].key
				}
				return true, nil
			})
			if err != nil {
				return nodeError(source.Name, err)
			}
		}
		if q.Limit > 0 && len(sources) > 1 {
			node.Close()
			nodes[i] = nil
		}
	}
	places = q.first(places)
	done.Flows = len(places)
	if q.Limit == 0 || len(sources) == 1 {
		return readAgain(ctx, nodes, places, func(_ int, f Flow) error { return use(f) })
	}
	return q.nameByNode(ctx, sources, places, use)
}

func closeAll(nodes []*Node) {
	for _, n := range nodes {
		if n != nil {
			n.Close()
		}
	}
}

// nameByNode names the flows at places one node after the other, and calls use with them in
// their order.
func (q *Query) nameByNode(ctx context.Context, sources []Source, places []place, use func(Flow) error) error {
	named := make([]Flow, len(places))
	nodes := make([]*Node, len(sources))
	for i, source := range sources {
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
		node, err := Open(ctx, source.Name, source.Dir, q.Bridge)
		if err != nil {
			return nodeError(source.Name, err)
		}
		nodes[i] = node
		err = readAgain(ctx, nodes, own, func(at int, f Flow) error { named[ranks[at]] = f; return nil })
		node.Close()
		if err != nil {
			return nodeError(source.Name, err)
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
func (q *Query) key(flow *record) uint64 {
	switch q.Sort {
	case ByPackets:
		return flow.Packets
	case ByBytes:
		return flow.Bytes
	}
	return ^(uint64(uint32(flow.Table))<<32 | uint64(^uint32(flow.Priority)))
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
	for i, from := range places {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		node := nodes[from.node]
		bridge := node.Bridges[from.bridge]
		dump, err := bridge.flows()
		if err != nil {
			return err
		}
		flow, err := openflow.FlowAt(dump, from.at)
		dump.Close()
		if err != nil {
			return fmt.Errorf("the flows of bridge %s changed while they were read: %w", bridge.Name, err)
		}
		record, _ := parse(flow)
		named, err := node.name(bridge, &record)
		if err != nil {
			return err
		}
		if err := use(i, named); err != nil {
			return err
		}
	}
	return nil
}
