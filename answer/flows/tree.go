package flows

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Stage counts the flows of a stage of a bridge.
type Stage struct {
	Node     string `json:"node,omitempty"`
	Bridge   string `json:"bridge"`
	Table    int    `json:"table"`
	Name     string `json:"stage,omitempty"`
	Flows    int    `json:"flows"`
	NeverHit int    `json:"never_hit"` // flows that matched no packet
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
}

// group is a stage with the places of its flows.
type group struct {
	Stage
	places []place
}

// Tree calls stage for each stage with flows that a query selects, and then use for those
// flows, at most Limit of each stage. A table of switches and of routers is two stages.
func Tree(ctx context.Context, sources []Source, q Query, stage func(Stage) error, use func(Flow) error) (Listed, error) {
	return q.listResolving(ctx, sources, func(done *Listed) error {
		for _, s := range sources {
			if err := q.treeOf(ctx, s, done, stage, use); err != nil {
				return nodeError(s.Name, err)
			}
		}
		return nil
	})
}

func (q *Query) treeOf(ctx context.Context, source Source, done *Listed, stage func(Stage) error, use func(Flow) error) error {
	node, err := Open(ctx, source.Name, source.Dir, q.Bridge)
	if err != nil {
		return err
	}
	defer node.Close()
	done.remark(source.Name, node.Remarks...)
	for i, bridge := range node.Bridges {
		groups, err := q.groups(ctx, node, i, done)
		if err != nil {
			return err
		}
		for _, group := range groups {
			group.Node, group.Bridge = node.Name, bridge.Name
			if err := stage(group.Stage); err != nil {
				return err
			}
			if err := readAgain(ctx, []*Node{node}, q.order(group.places), func(_ int, f Flow) error { return use(f) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups returns the stages of a bridge with flows, by table.
func (q *Query) groups(ctx context.Context, node *Node, bridge int, done *Listed) ([]*group, error) {
	type key struct {
		table int
		name  string
	}
	b := node.Bridges[bridge]
	found := map[key]*group{}
	err := node.eachFlow(ctx, b, &q.Filter, nil, done, func(flow *record) (bool, error) {
		name, err := node.stage(b, flow)
		if err != nil {
			return false, err
		}
		stage := found[key{flow.Table, name}]
		if stage == nil {
			stage = &group{Stage: Stage{Table: flow.Table, Name: name}}
			found[key{flow.Table, name}] = stage
		}
		stage.add(q, flow, bridge)
		done.Flows++
		return true, nil
	})
	return slices.SortedFunc(maps.Values(found), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name))
	}), err
}

func (g *group) add(query *Query, flow *record, bridge int) {
	g.Flows++
	g.Packets += flow.Packets
	g.Bytes += flow.Bytes
	if flow.neverHit() {
		g.NeverHit++
	}
	if query.Sort == AsRecorded && query.Limit > 0 && len(g.places) >= query.Limit {
		return
	}
	g.places = append(g.places, place{key: query.key(flow), at: flow.At, bridge: int32(bridge)})
	if query.Limit > 0 && len(g.places) >= 2*query.Limit+1024 {
		g.places = query.first(g.places)
	}
}

// order returns the places in the order of the query, and within its limit.
func (q *Query) order(places []place) []place {
	if q.Sort == AsRecorded {
		return places
	}
	return q.first(places)
}
