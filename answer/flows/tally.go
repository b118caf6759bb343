package flows

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"ovs-offline/pkg/openflow"
)

// tally counts the flows with a cookie in a table. Most logical flows are one.
type tally struct {
	key       tallyKey
	packets   uint64
	flows     uint32
	never     uint32
	clauses   uint32
	priority  int32
	metadata  uint32
	uncounted bool
}

// tallyKey is a cookie, a table and the index of a bridge in one number, so that keys are
// sorted by their cookies.
type tallyKey uint64

func newTallyKey(cookie uint32, table, bridge int) tallyKey {
	return tallyKey(cookie)<<32 | tallyKey(uint8(table))<<8 | tallyKey(bridge)
}

func (k tallyKey) cookie() uint64 { return uint64(k >> 32) }
func (k tallyKey) table() int     { return int(k >> 8 & 0xff) }
func (k tallyKey) bridge() int    { return int(k & 0xff) }

// tallied are the counts of a node.
type tallied struct {
	counts []tally
	index  map[tallyKey]int32 // in counts
	flows  int
	lost   []int // lines that can't be read, of each bridge
}

// openTallied opens a node, and counts its flows meanwhile: to read the dumps takes as long
// as to read the databases.
func openTallied(ctx context.Context, s Source) (node *Node, counts tallied, err error) {
	node = &Node{Name: s.Name, dir: s.Dir, stages: map[stageKey]string{}}
	if err := node.findBridges(""); err != nil {
		return nil, counts, err
	}
	counts = tallied{index: map[tallyKey]int32{}, lost: make([]int, len(node.Bridges))}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return node.openDatabases(within) })
	group.Go(func() error {
		for i, b := range node.Bridges {
			if err := counts.read(within, b, i); err != nil {
				return fmt.Errorf("the flows of bridge %s: %w", b.Name, err)
			}
		}
		return nil
	})
	err = group.Wait()
	counts.index = nil
	if err == nil {
		read := slices.Clone(node.Bridges)
		err = node.useDatabases(ctx)
		counts.reorder(read, node.Bridges)
	}
	if err != nil {
		node.Close()
		return nil, counts, err
	}
	return node, counts, nil
}

// reorder gives each bridge the index that it has among the bridges after they were put in order,
// in place of the one that it had when its flows were read.
func (t *tallied) reorder(before, after []*Bridge) {
	lost := make([]int, len(after))
	to := make([]int, len(before))
	for i, bridge := range before {
		to[i] = slices.Index(after, bridge)
		lost[to[i]] = t.lost[i]
	}
	t.lost = lost
	for i := range t.counts {
		key := t.counts[i].key
		t.counts[i].key = newTallyKey(uint32(key.cookie()), key.table(), to[key.bridge()])
	}
}

// mostBridges is the number of bridges whose flows are counted. A node with more has none of
// OVN's among the last.
const mostBridges = 255

// read counts the flows of a bridge.
func (t *tallied) read(ctx context.Context, bridge *Bridge, at int) error {
	if at >= mostBridges {
		return nil
	}
	file, err := bridge.flows()
	if err != nil {
		return err
	}
	defer file.Close()
	lines := 0
	for flow, problem := range openflow.RawFlows(file) {
		if lines++; lines%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		record, ok := parseRaw(&flow)
		if problem != nil || !ok {
			if problem == nil || problem.Lost {
				t.lost[at]++
			}
			continue
		}
		if err := t.add(bridge, at, &record); err != nil {
			return err
		}
	}
	return nil
}

func (t *tallied) add(b *Bridge, bridge int, flow *record) error {
	t.flows++
	key, err := b.ruleKey(flow)
	if err != nil {
		return err
	}
	cookie := uint32(key.Cookie)
	if key.Cookie > 0xffffffff {
		cookie = 0
	}
	at := newTallyKey(cookie, flow.Table, bridge)
	i, known := t.index[at]
	if !known {
		i = int32(len(t.counts))
		t.index[at] = i
		t.counts = append(t.counts, tally{key: at, priority: int32(key.Priority), metadata: uint32(key.Metadata)})
	}
	t.counts[i].add(flow)
	return nil
}

func (t *tally) add(flow *record) {
	t.flows++
	t.packets += flow.Packets
	switch {
	case flow.isClause():
		t.clauses++
	case !flow.Counted:
		t.uncounted = true
	case flow.Packets == 0:
		t.never++
	}
}

// addTallied adds what was counted of a node, and what could not be.
func (l *Listed) addTallied(node *Node, t tallied) {
	l.Flows += t.flows
	for i, lines := range t.lost {
		l.Lost += lines
		l.remarkUnread(node, node.Bridges[i], lines)
	}
}
