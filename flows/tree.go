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
	var done Listed
	if err := q.Filter.prepare(); err != nil {
		return done, err
	}
	for _, s := range sources {
		if err := q.treeOf(ctx, s, &done, stage, use); err != nil {
			return done, nodeError(s.Name, err)
		}
	}
	return done, nil
}

func (q *Query) treeOf(ctx context.Context, s Source, done *Listed, stage func(Stage) error, use func(Flow) error) error {
	n, err := Open(ctx, s.Name, s.Dir, q.Bridge)
	if err != nil {
		return err
	}
	defer n.Close()
	done.remark(s.Name, n.Remarks...)
	for i, b := range n.Bridges {
		groups, err := q.groups(ctx, n, i, done)
		if err != nil {
			return err
		}
		for _, g := range groups {
			g.Node, g.Bridge = n.Name, b.Name
			if err := stage(g.Stage); err != nil {
				return err
			}
			if err := readAgain(ctx, []*Node{n}, q.order(g.places), func(_ int, f Flow) error { return use(f) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups returns the stages of a bridge with flows, by table.
func (q *Query) groups(ctx context.Context, n *Node, bridge int, done *Listed) ([]*group, error) {
	type key struct {
		table int
		name  string
	}
	b := n.Bridges[bridge]
	found := map[key]*group{}
	err := n.each(ctx, b, &q.Filter, nil, done, func(r *record) (bool, error) {
		name, err := n.stage(b, r)
		if err != nil {
			return false, err
		}
		g := found[key{r.table, name}]
		if g == nil {
			g = &group{Stage: Stage{Table: r.table, Name: name}}
			found[key{r.table, name}] = g
		}
		g.add(q, r, bridge)
		done.Flows++
		return true, nil
	})
	return slices.SortedFunc(maps.Values(found), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Name, b.Name))
	}), err
}

func (g *group) add(q *Query, r *record, bridge int) {
	g.Flows++
	g.Packets += r.Packets
	g.Bytes += r.Bytes
	if r.neverHit() {
		g.NeverHit++
	}
	if q.Sort == AsRecorded && q.Limit > 0 && len(g.places) >= q.Limit {
		return
	}
	g.places = append(g.places, place{key: q.key(r), at: r.At, bridge: int32(bridge)})
	if q.Limit > 0 && len(g.places) >= 2*q.Limit+1024 {
		g.places = q.first(g.places)
	}
}

// order returns the flows in the order of the query, and within its limit.
func (q *Query) order(places []place) []place {
	if q.Sort == AsRecorded {
		return places
	}
	return q.first(places)
}
