package flows

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ovs-offline/trace/rules"
)

// atOnce is the number of cookies whose rows are looked up before they are added up.
const atOnce = 1 << 14

// resolve adds the counts of a node's cookies to what they are for. Rows are looked up on
// all processors, while the counts of those before them are added up.
func (c *counter) resolve(ctx context.Context, n *Node, source int, counts []tally) error {
	workers := make([]*rules.Origins, runtime.NumCPU())
	for i := range workers {
		if n.rules != nil {
			workers[i] = n.rules.NewOrigins()
		}
	}
	// Sorted, because rows with similar cookies are beside each other in the index.
	slices.SortFunc(counts, func(a, b tally) int { return cmp.Compare(a.key, b.key) })
	var before []tally
	var known []rules.Origin // of before
	for part := range slices.Chunk(counts, atOnce) {
		found := make([]rules.Origin, len(part))
		group, within := errgroup.WithContext(ctx)
		for w, origins := range workers {
			group.Go(func() error {
				for i := w; i < len(part); i += len(workers) {
					if within.Err() != nil {
						return within.Err()
					}
					var err error
					if found[i], err = n.origin(origins, n.Bridges[part[i].key.bridge()], part[i].record()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := c.resolved(n, source, before, known)
		if waited := group.Wait(); waited != nil || err != nil {
			return cmp.Or(waited, err)
		}
		before, known = part, found
	}
	return c.resolved(n, source, before, known)
}

// record returns a flow that counts were made of, as far as its row depends on it.
func (t *tally) record() *record {
	return &record{cookie: t.key.cookie(), table: t.key.table(), priority: int(t.priority), metadata: uint64(t.metadata)}
}

// resolved adds counts whose rows are known.
func (c *counter) resolved(n *Node, source int, counts []tally, origins []rules.Origin) error {
	for i := range counts {
		if err := c.one(n, source, &counts[i], origins[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *counter) one(n *Node, source int, t *tally, origin rules.Origin) error {
	r := t.record()
	b := n.Bridges[t.key.bridge()]
	if origin.Table == "" && r.cookie != 0 && n.isOVN(b) {
		c.unknown += int(t.flows)
	}
	if t.flows >= manyFlowsOfOne && origin.IsNorthbound() {
		c.candidate(candidate{source, t.key.bridge(), r.table, r.cookie, origin, int(t.flows)})
	}
	return c.add(n, b, source, r, origin, t)
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
