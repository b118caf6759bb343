package flows

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ovs-offline/trace/rules"
)

// atOnce is the number of cookies whose rows are looked up before they are added up.
const atOnce = 1 << 14

// resolve adds the counts of a node's cookies to what they are for. Rows are looked up on
// all processors, while the counts of those before them are added up.
func (c *counter) resolve(ctx context.Context, n *Node, source int, counts map[tallyKey]*tally) error {
	workers := make([]*rules.Origins, runtime.NumCPU())
	for i := range workers {
		if n.rules != nil {
			workers[i] = n.rules.NewOrigins()
		}
	}
	// Sorted, because rows with similar cookies are beside each other in the index.
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.table, b.table), cmp.Compare(a.bridge, b.bridge))
	})
	var before []tallyKey
	var known []rules.Origin // of before
	for part := range slices.Chunk(keys, atOnce) {
		found := make([]rules.Origin, len(part))
		group, within := errgroup.WithContext(ctx)
		for w, origins := range workers {
			group.Go(func() error {
				for i := w; i < len(part); i += len(workers) {
					if within.Err() != nil {
						return within.Err()
					}
					var err error
					if found[i], err = n.origin(origins, n.Bridges[part[i].bridge], recordOf(part[i], counts[part[i]])); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := c.resolved(n, source, before, counts, known)
		if waited := group.Wait(); waited != nil || err != nil {
			return cmp.Or(waited, err)
		}
		before, known = part, found
	}
	return c.resolved(n, source, before, counts, known)
}

// recordOf returns a flow that counts were made of, as far as its row depends on it.
func recordOf(key tallyKey, t *tally) *record {
	return &record{cookie: uint64(key.cookie), table: int(key.table), priority: int(t.priority), metadata: uint64(t.metadata)}
}

// resolved adds the counts of cookies whose rows are known.
func (c *counter) resolved(n *Node, source int, keys []tallyKey, counts map[tallyKey]*tally, origins []rules.Origin) error {
	for i, key := range keys {
		if err := c.one(n, source, key, counts[key], origins[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) one(n *Node, source int, key tallyKey, t *tally, origin rules.Origin) error {
	r := recordOf(key, t)
	if origin.Table == "" && r.cookie != 0 && n.isOVN(n.Bridges[key.bridge]) {
		c.unknown += int(t.flows)
	}
	if t.flows >= manyFlowsOfOne && origin.IsNorthbound() {
		c.candidate(candidate{source, int(key.bridge), r.table, r.cookie, origin, int(t.flows)})
	}
	return c.add(n, n.Bridges[key.bridge], source, r, origin, t)
}

// origin returns the row that a flow was made from. Where several rows have its cookie, the
// rules tell them apart.
func (n *Node) origin(origins *rules.Origins, b *Bridge, r *record) (rules.Origin, error) {
	if !n.isOVN(b) {
		return rules.Origin{}, nil
	}
	key := b.key(r)
	origin, ok, several, err := origins.Find(key)
	if err != nil || ok || !several {
		return origin, err
	}
	rule, _, err := n.rules.Find(key)
	if rule.Cause.Table != "" {
		return rules.Origin{Table: rule.Cause.Table, UUID: rule.Cause.UUID, Stage: rule.Stage}, err
	}
	return rules.Origin{Table: rule.Row, UUID: rule.UUID, Stage: rule.Stage}, err
}
