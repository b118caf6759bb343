package compare

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/rules"
)

// bridgeFlows are the flows of a bridge of one side.
type bridgeFlows struct {
	node    *node
	zone    *zone  // with a southbound database, that of the other side if need be; nil for none
	path    string // of the dump
	numbers *numbers
	layout  rules.Layout    // zero for a bridge without OVN
	local   map[string]bool // the datapaths with flows
}

// flowDifference is a flow that differs: the flow before and after, one of which may be
// missing.
type flowDifference struct{ old, new *openflow.Flow }

// compareFlows compares the flows of the bridges of a node.
func (c *comparer) compareFlows(ctx context.Context, p *nodePair) error {
	old, err := p.old.bridges()
	if err != nil {
		return err
	}
	now, err := p.new.bridges()
	if err != nil {
		return err
	}
	for _, bridge := range slices.Sorted(maps.Keys(old)) {
		if !now[bridge] {
			continue // a finding of the database
		}
		common := c.commonOf(p, bridge)
		a, err := p.old.flows(bridge, common)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", bridge, err)
		}
		b, err := p.new.flows(bridge, common)
		if err != nil {
			return fmt.Errorf("bridge %s: %w", bridge, err)
		}
		switch {
		case a == nil && b == nil:
		case a == nil || b == nil:
			c.missing(fmt.Sprintf("flows of bridge %s of node %s: only one side has them", bridge, p.new.name))
		default:
			if err := c.compareBridge(ctx, p, bridge, a, b); err != nil {
				return fmt.Errorf("bridge %s: %w", bridge, err)
			}
		}
	}
	return nil
}

// bridges returns the names of a node's bridges.
func (n *node) bridges() (map[string]bool, error) {
	found := map[string]bool{}
	m, err := n.dir.Manifest()
	if err != nil {
		return nil, err
	}
	if c := m.Collection(workdir.OVS); c != nil {
		for _, name := range c.Bridges {
			found[name] = true
		}
	}
	if n.ovs == nil {
		return found, nil
	}
	for row, err := range n.ovs.Rows("Bridge", "name") {
		if err != nil {
			return nil, err
		}
		found[row.String("name")] = true
	}
	return found, nil
}

// flows prepares the flows of a bridge; nil if they were not collected.
func (n *node) flows(bridge string, common common) (*bridgeFlows, error) {
	f := &bridgeFlows{node: n, zone: common.zone, path: existing(n.dir.DumpFile(bridge, workdir.Flows)), local: map[string]bool{}}
	if f.path == "" {
		return nil, nil
	}
	if n.zone != nil && n.zone.sb != nil {
		f.zone = n.zone
	}
	var err error
	var names *overlay
	if f.zone != nil {
		if f.layout, err = f.readLayout(f.zone.rules); err != nil {
			return nil, err
		}
		if f.layout != (rules.Layout{}) {
			if names, err = f.zone.overlay(); err != nil {
				return nil, err
			}
		}
	}
	f.numbers, err = n.readNumbers(bridge, names, common)
	return f, err
}

func (f *bridgeFlows) readLayout(r *rules.Rules) (rules.Layout, error) {
	var failed error
	layout, err := r.Layout(func(yield func(rules.Flow) bool) {
		for flow, err := range f.all(context.Background()) {
			if err != nil {
				failed = err
				return
			}
			if parsed, err := rules.ParseFlow(flow.Text); err == nil && !yield(parsed) {
				return
			}
		}
	})
	if err == nil {
		err = failed
	}
	return layout, err
}

// all yields the flows of the dump. Lines that are no flows are left out.
func (f *bridgeFlows) all(ctx context.Context) iter.Seq2[openflow.Flow, error] {
	return func(yield func(openflow.Flow, error) bool) {
		dump, ok, err := workdir.OpenCollected(f.path)
		if !ok {
			yield(openflow.Flow{}, err)
			return
		}
		defer dump.Close()
		for flow, problem := range openflow.Flows(interrupt.Reader(ctx, dump)) {
			if problem == nil && !yield(flow, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(openflow.Flow{}, err)
		}
	}
}

// compareBridge compares the flows of a bridge. It reads a dump twice rather than keep all
// flows of a node with a million of them in memory.
func (c *comparer) compareBridge(ctx context.Context, p *nodePair, bridge string, a, b *bridgeFlows) error {
	zone := c.zoneOf(p.new.zone)
	if zone != nil && zone.upgrade != nil && (a.layout != rules.Layout{} || b.layout != rules.Layout{}) {
		return c.compareStages(ctx, zone, a, b)
	}
	if a.layout.Egress != b.layout.Egress {
		c.missing(fmt.Sprintf("flows of bridge %s of node %s: the pipelines of OVN begin at other tables", bridge, p.new.name))
		return nil
	}
	seed := maphash.MakeSeed()
	counts := map[uint64]int{}
	key := func(side *bridgeFlows, f openflow.Flow) uint64 {
		match, actions := side.named(f)
		return maphash.String(seed, match+" "+actions)
	}
	for f, err := range a.all(ctx) {
		if err != nil {
			return err
		}
		counts[key(a, f)]++
	}
	var added, gone []openflow.Flow
	left := 0
	for _, n := range counts {
		left += n
	}
	for f, err := range b.all(ctx) {
		if err != nil {
			return err
		}
		if k := key(b, f); counts[k] > 0 {
			counts[k]--
			left--
		} else {
			added = append(added, f)
		}
	}
	if left > 0 {
		for f, err := range a.all(ctx) {
			if err != nil {
				return err
			}
			if k := key(a, f); counts[k] > 0 {
				counts[k]--
				gone = append(gone, f)
			}
		}
	}
	if lost := slices.Concat(a.numbers.spelling.LeftOut(), b.numbers.spelling.LeftOut()); len(lost) > 0 {
		slices.Sort(lost)
		c.missing(fmt.Sprintf("%s in the flows of bridge %s of node %s: a dump in %s does not have them", strings.Join(slices.Compact(lost), ", "), bridge, p.new.name, a.numbers.spelling.Oldest))
	}
	e := &explainer{comparer: c, pair: p, zone: zone, bridge: bridge, old: a, new: b}
	return e.explain(ctx, differencesOf(a, b, gone, added))
}

// named returns a flow in names, and remembers its datapath.
func (f *bridgeFlows) named(flow openflow.Flow) (match, actions string) {
	match, actions, datapath := f.numbers.flow(flow)
	if datapath != "" {
		f.local[datapath] = true
	}
	return match, actions
}

// differencesOf joins the flows that have the same match on both sides, and only other
// actions.
func differencesOf(a, b *bridgeFlows, gone, added []openflow.Flow) []flowDifference {
	byMatch := map[string][]int{}
	var all []flowDifference
	for i := range gone {
		match, _ := a.named(gone[i])
		byMatch[match] = append(byMatch[match], len(all))
		all = append(all, flowDifference{old: &gone[i]})
	}
	for i := range added {
		match, _ := b.named(added[i])
		if list := byMatch[match]; len(list) > 0 {
			all[list[0]].new = &added[i]
			byMatch[match] = list[1:]
			continue
		}
		all = append(all, flowDifference{new: &added[i]})
	}
	return all
}

// compareStages counts the flows of a bridge by the stage that they are of, because another
// version of OVN writes other flows for the same network. The differences follow from the
// upgrade.
func (c *comparer) compareStages(ctx context.Context, z *zonePair, a, b *bridgeFlows) error {
	old, err := a.stages(ctx)
	if err != nil {
		return err
	}
	now, err := b.stages(ctx)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, counts := range []map[string]int{old, now} {
		for stage := range counts {
			all[stage] = true
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(all)) {
		before, after := old[stage], now[stage]
		z.upgrade.Flows.Added += max(0, after-before)
		z.upgrade.Flows.Gone += max(0, before-after)
		if before != after {
			z.upgrade.Follows = append(z.upgrade.Follows, fmt.Sprintf("%s: stage %s has %s instead of %d", b.node.name, stage, number(after, "flow"), before))
		}
	}
	return nil
}

// stages counts the flows by the stage that they are of.
func (f *bridgeFlows) stages(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for flow, err := range f.all(ctx) {
		if err != nil {
			return nil, err
		}
		rule, _, err := f.rule(flow)
		if err != nil {
			return nil, err
		}
		counts[rule.Stage]++
	}
	return counts, nil
}

// rule returns what a flow was made from; ok is false if that is not known.
func (f *bridgeFlows) rule(flow openflow.Flow) (rule rules.Rule, ok bool, err error) {
	parsed, err := rules.ParseFlow(flow.Text)
	if err != nil || f.zone == nil || f.layout == (rules.Layout{}) {
		return rules.Rule{Stage: fmt.Sprintf("table %d", parsed.Table)}, false, nil
	}
	parsed.Layout = f.layout
	rule, ok, err = f.zone.rules.Find(parsed)
	if !ok && err == nil {
		rule.Stage = fmt.Sprintf("table %d", parsed.Table)
	}
	return rule, ok, err
}

// overlay returns what the keys in the southbound database stand for.
func (z *zone) overlay() (*overlay, error) {
	var err error
	if z.keys == nil {
		z.keys, err = z.readOverlay()
	}
	return z.keys, err
}

// hasRow reports whether a database has a row.
func hasRow(x *file.Index, table, uuid string) bool {
	_, ok, err := x.Row(table, uuid, "_uuid")
	return ok && err == nil
}
