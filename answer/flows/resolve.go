package flows

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/rules"
)

// atOnce is the number of cookies whose rows are looked up before they are added up.
const atOnce = 1 << 14

// resolve adds the counts of a node's cookies to what they are for. Rows are looked up on
// all processors, while the counts of those before them are added up.
func (c *counter) resolve(ctx context.Context, node *Node, source int, counts []tally) error {
	workers := make([]*rules.Origins, runtime.NumCPU())
	for i := range workers {
		if node.rules != nil {
			workers[i] = node.rules.NewOrigins()
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
					if found[i], err = node.origin(origins, node.Bridges[part[i].key.bridge()], part[i].record()); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := c.addResolved(node, source, before, known)
		if waited := group.Wait(); waited != nil || err != nil {
			return cmp.Or(waited, err)
		}
		before, known = part, found
	}
	return c.addResolved(node, source, before, known)
}

// record returns what the flows of a count have in common, by which their row is found.
func (t *tally) record() *record {
	return &record{Key: openflow.Key{Cookie: t.key.cookie(), Table: t.key.table(), Priority: int(t.priority)}, metadata: uint64(t.metadata)}
}

// addResolved adds counts whose rows are known.
func (c *counter) addResolved(n *Node, source int, counts []tally, origins []rules.Origin) error {
	for i := range counts {
		if err := c.addTally(n, source, &counts[i], origins[i]); err != nil {
			return err
		}
	}
	return nil
}

// addTally adds a count whose row is known.
func (c *counter) addTally(node *Node, source int, tally *tally, origin rules.Origin) error {
	flow := tally.record()
	bridge := node.Bridges[tally.key.bridge()]
	if origin.Table == "" && flow.Cookie != 0 && node.isOVN(bridge) {
		c.unknown[node.Name] += int(tally.flows)
	}
	if tally.flows >= manyFlowsOfOne && origin.IsNorthbound() && origin.Stage != "" {
		c.keepCandidate(candidate{source, tally.key.bridge(), flow.Table, flow.Cookie, origin, int(tally.flows)})
	}
	return c.add(node, bridge, source, flow, origin, tally)
}

// origin returns the row that a flow was made from. Where several rows have its cookie, the
// rules tell them apart.
func (n *Node) origin(origins *rules.Origins, bridge *Bridge, flow *record) (rules.Origin, error) {
	if !n.isOVN(bridge) {
		return rules.Origin{}, nil
	}
	key := bridge.key(flow)
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
