package flows

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/openflow"
)

// tally counts the flows with a cookie in a table. Most logical flows are one.
type tally struct {
	packets   uint64
	flows     uint32
	never     uint32
	clauses   uint32
	priority  int32
	metadata  uint32
	uncounted bool
}

type tallyKey struct {
	cookie uint32
	table  uint8
	bridge uint8
}

// tallied are the counts of a node.
type tallied struct {
	counts map[tallyKey]*tally
	flows  int
	lost   []int // lines that can't be read, of each bridge
}

// openTallied opens a node, and counts its flows meanwhile: to read the dumps takes as long
// as to read the databases.
func openTallied(ctx context.Context, s Source) (n *Node, t tallied, err error) {
	n = &Node{Name: s.Name, dir: s.Dir, stages: map[stageKey]string{}}
	if err := n.findBridges(""); err != nil {
		return nil, t, err
	}
	t = tallied{counts: map[tallyKey]*tally{}, lost: make([]int, len(n.Bridges))}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return n.openDatabases(within) })
	group.Go(func() error {
		for i, b := range n.Bridges {
			if err := t.read(within, b, i); err != nil {
				return fmt.Errorf("the flows of bridge %s: %w", b.Name, err)
			}
		}
		return nil
	})
	if err = group.Wait(); err == nil {
		err = n.useDatabases(ctx)
	}
	if err != nil {
		n.Close()
		return nil, t, err
	}
	return n, t, nil
}

// mostBridges is the number of bridges whose flows are counted. A node with more has none of
// OVN's among the last.
const mostBridges = 256

// read counts the flows of a bridge.
func (t *tallied) read(ctx context.Context, b *Bridge, at int) error {
	if at >= mostBridges {
		return nil
	}
	f, err := os.Open(b.dump)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := 0
	for flow, problem := range openflow.RawFlows(f) {
		if lines++; lines%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, ok := parseRaw(&flow)
		if problem != nil || !ok {
			if problem == nil || problem.Lost {
				t.lost[at]++
			}
			continue
		}
		if err := t.add(b, at, &r); err != nil {
			return err
		}
	}
	return nil
}

func (t *tallied) add(b *Bridge, bridge int, r *record) error {
	t.flows++
	key, err := b.ruleOf(r)
	if err != nil {
		return err
	}
	at := tallyKey{uint32(key.Cookie), uint8(r.table), uint8(bridge)}
	if key.Cookie > 0xffffffff {
		at.cookie = 0
	}
	one := t.counts[at]
	if one == nil {
		one = &tally{priority: int32(key.Priority), metadata: uint32(key.Metadata)}
		t.counts[at] = one
	}
	one.add(r)
	return nil
}

func (t *tally) add(r *record) {
	t.flows++
	t.packets += r.Packets
	switch {
	case r.isClause:
		t.clauses++
	case !r.Counted:
		t.uncounted = true
	case r.Packets == 0:
		t.never++
	}
}

// tallied adds what was counted of a node, and what could not be.
func (l *Listed) tallied(n *Node, t tallied) {
	l.Flows += t.flows
	for i, lines := range t.lost {
		l.Lost += lines
		l.unread(n, n.Bridges[i], lines)
	}
}
